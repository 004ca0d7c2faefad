package traffic

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"
)

// Without -ns a sender and a receiver agree over TCP on the port before the
// first data port when to begin:
//
//	sender → receiver   windtunnel-ntttcp 1 THREADS
//	receiver → sender   ready        its data sockets are there
//	                    (the sender connects its threads)
//	receiver → sender   go           every thread is connected; both begin
//
// The connection stays until the sender's threads have ended. This is not the
// protocol of Microsoft's NTttcp, which is not public beyond its source: with a
// real NTttcp at the other end, give -ns to both.

const syncHello = "windtunnel-ntttcp 1 "

// syncPeer is one such connection.
type syncPeer struct {
	conn  net.Conn
	lines *bufio.Reader
	stop  <-chan struct{} // ends every wait for the peer
	ended chan struct{}   // closed when the peer has closed, once watched
	shut  chan struct{}
}

func newSyncPeer(conn net.Conn, stop <-chan struct{}) *syncPeer {
	p := &syncPeer{conn: conn, lines: bufio.NewReaderSize(conn, 256), stop: stop, ended: make(chan struct{}), shut: make(chan struct{})}
	go func() {
		select {
		case <-stop:
			conn.SetReadDeadline(time.Unix(1, 0)) // fails only on a closed connection, on which nobody waits
		case <-p.shut:
		}
	}()
	return p
}

func (p *syncPeer) close() error {
	closeOnce(p.shut)
	return p.conn.Close()
}

func (p *syncPeer) say(line string) error {
	err := p.conn.SetWriteDeadline(time.Now().Add(handshakeTimeout))
	if err == nil {
		_, err = p.conn.Write([]byte(line + "\n"))
	}
	if err != nil {
		return fmt.Errorf("synchronise with %v: %w", p.conn.RemoteAddr(), err)
	}
	return nil
}

func (p *syncPeer) hear(wait time.Duration) (string, error) {
	deadline := time.Time{}
	if wait > 0 {
		deadline = time.Now().Add(wait)
	}
	err := p.conn.SetReadDeadline(deadline)
	var line []byte
	if err == nil && !isClosed(p.stop) {
		line, err = p.lines.ReadSlice('\n')
	}
	if isClosed(p.stop) {
		return "", errStopped
	}
	if err != nil {
		return "", fmt.Errorf("synchronise with %v: %w; with Microsoft's NTttcp at the other end give -ns to both ends", p.conn.RemoteAddr(), err)
	}
	return strings.TrimSuffix(string(line), "\n"), nil
}

func (p *syncPeer) expect(line string, wait time.Duration) error {
	got, err := p.hear(wait)
	if err == nil && got != line {
		err = fmt.Errorf("synchronise with %v: it said %q where %q was due; with Microsoft's NTttcp at the other end give -ns to both ends", p.conn.RemoteAddr(), got, line)
	}
	return err
}

// watch closes ended when the peer closes.
func (p *syncPeer) watch() {
	p.conn.SetReadDeadline(time.Time{}) // fails only on a closed connection, which the read tells
	go func() {
		p.lines.ReadByte()
		close(p.ended)
	}()
}

// dialSync connects to a receiver's synchronisation port, again and again until
// it listens.
func dialSync(to netip.AddrPort, threads int, wait time.Duration, stop <-chan struct{}) (*syncPeer, error) {
	deadline := time.Now().Add(wait)
	for {
		conn, err := net.DialTimeout("tcp", to.String(), handshakeTimeout)
		if err == nil {
			p := newSyncPeer(conn, stop)
			if err := p.say(fmt.Sprint(syncHello, threads)); err != nil {
				return nil, errors.Join(err, p.close())
			}
			return p, nil
		}
		select {
		case <-stop:
			return nil, errStopped
		case <-time.After(50 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("synchronise with the receiver at %v: %w; start the receiver first, without -ns, and with the same -p", to, unwrapErrno(err))
		}
	}
}

var errStopped = errors.New("interrupted before any traffic; nothing was measured")

// acceptSync waits for a sender on the synchronisation port.
func acceptSync(l *net.TCPListener, threads int, wait time.Duration, stop <-chan struct{}) (*syncPeer, error) {
	conn, err := acceptUntil(l, wait, stop)
	switch {
	case errors.Is(err, net.ErrClosed):
		return nil, errStopped
	case isTimeout(err):
		return nil, fmt.Errorf("no sender came to %v within %v (-to); start one, without -ns", l.Addr(), wait)
	case err != nil:
		return nil, fmt.Errorf("wait for a sender on %v: %w", l.Addr(), err)
	}
	p := newSyncPeer(conn, stop)
	if err := p.expect(fmt.Sprint(syncHello, threads), handshakeTimeout); err != nil {
		return nil, errors.Join(fmt.Errorf("%w; both ends need as many threads in -m, here %d", err, threads), p.close())
	}
	return p, nil
}
