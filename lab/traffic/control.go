package traffic

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// control is the connection over which the two ends coordinate a run. A goroutine reads
// it, so that a run notices at once when the other end stops or disappears.
type control struct {
	conn     net.Conn
	peer     string // in errors: "server 10.0.0.2:5001"
	incoming chan message
	err      error         // reason for the end of reading; set before lost is closed
	lost     chan struct{} // closed when no more messages can arrive
	stop     chan struct{} // closed when the peer asks to end
	counted  chan struct{} // closed when the peer's window is over
	done     chan struct{} // closed when the peer's threads have ended
}

// keepAlive detects within about 8 s that the peer's host is gone.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 3 * time.Second, Interval: time.Second, Count: 5}

func newControl(conn net.Conn, peer string) *control {
	if tcp, ok := conn.(*net.TCPConn); ok {
		tcp.SetKeepAliveConfig(keepAlive) // if this fails, the deadlines still end each wait
	}
	c := &control{conn: conn, peer: peer, incoming: make(chan message, 8),
		lost: make(chan struct{}), stop: make(chan struct{}), counted: make(chan struct{}), done: make(chan struct{})}
	go c.read()
	return c
}

// read handles messages until the connection ends.
func (c *control) read() {
	c.err = c.receive()
	close(c.lost)
}

func (c *control) receive() error {
	lines := bufio.NewScanner(c.conn)
	lines.Buffer(make([]byte, 0, 64<<10), maxMessage)
	for lines.Scan() {
		m, err := decodeMessage(lines.Bytes())
		if err != nil {
			return err
		}
		switch m.Type {
		case typeStop:
			closeOnce(c.stop)
		case typeCounted:
			closeOnce(c.counted)
		case typeDone:
			closeOnce(c.done)
		case typeError:
			return peerError(m.Error)
		default:
			select {
			case c.incoming <- m:
			default:
				return fmt.Errorf("more control messages than the protocol has; the last was %q", m.Type)
			}
		}
	}
	return cmp.Or(lines.Err(), io.EOF)
}

// peerError is an error that the other end reported.
type peerError string

func (e peerError) Error() string { return string(e) }

func closeOnce(ch chan struct{}) {
	select {
	case <-ch:
	default:
		close(ch)
	}
}

func (c *control) send(m message) error {
	line, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("write a control message to the %s: %w", c.peer, err)
	}
	if err := c.conn.SetWriteDeadline(time.Now().Add(handshakeTimeout)); err != nil {
		return fmt.Errorf("write a control message to the %s: %w", c.peer, err)
	}
	if _, err := c.conn.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("write a control message to the %s: %w; it ended or the network between is down", c.peer, err)
	}
	return nil
}

// refuse sends the peer the reason why this end cannot continue, and returns the reason.
func (c *control) refuse(err error) error {
	c.send(message{Type: typeError, Error: err.Error()})
	return err
}

// expect waits for a message of a type.
func (c *control) expect(kind string, wait time.Duration) (message, error) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case m := <-c.incoming:
		return c.is(m, kind)
	case <-timer.C:
		return message{}, fmt.Errorf("the %s sent no %q within %v; it hangs or the network between is down", c.peer, kind, wait)
	case <-c.lost:
	}
	select { // messages that arrived before the end
	case m := <-c.incoming:
		return c.is(m, kind)
	default:
		return message{}, c.gone()
	}
}

func (c *control) is(m message, kind string) (message, error) {
	if m.Type != kind {
		return message{}, fmt.Errorf("the %s sent %q where %q was due; use the same windtunnel on both ends", c.peer, m.Type, kind)
	}
	return m, nil
}

// gone returns the reason why the peer is lost.
func (c *control) gone() error {
	var said peerError
	switch {
	case errors.As(c.err, &said):
		return fmt.Errorf("the %s says: %w", c.peer, said)
	case errors.Is(c.err, bufio.ErrTooLong):
		return fmt.Errorf("the %s sent a control message longer than %d bytes; check that it is a windtunnel", c.peer, maxMessage)
	case errors.Is(c.err, io.EOF):
		return fmt.Errorf("the %s ended before the run was over; see what it printed, and start it again", c.peer)
	}
	return fmt.Errorf("the connection to the %s broke: %w; check that it still runs and that the network between is up", c.peer, c.err)
}

func (c *control) close() { c.conn.Close() }
