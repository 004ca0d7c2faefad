package traffic

import (
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"time"
)

// Without -ns the receiver begins just before the sender. They use a control connection to the
// port before the first data port:
//
//	sender → receiver   ntttcp{threads}
//	receiver → sender   ready{port}  the receiver's data sockets are open
//	                    (the sender connects its threads)
//	sender → receiver   joined       every thread is connected
//	receiver → sender   start        the receiver's threads count; the time of both ends begins
//
// The connection stays open until the sender's threads have ended. Microsoft's
// NTttcp has another protocol, documented only by its source. With Microsoft's
// NTttcp at the other end, give -ns to both ends.

var errStopped = errors.New("the run was interrupted before any traffic; nothing was measured")

// peer adds a control connection to the run. An interrupt of the run ends each
// wait on the connection.
func (n *ntttcp) peer(conn net.Conn) *control {
	c := newControl(conn, "other end at "+conn.RemoteAddr().String())
	go func() {
		select {
		case <-n.stop:
			conn.SetReadDeadline(time.Unix(1, 0)) // fails only on a closed connection, which has no waiting reader
		case <-c.lost:
		}
	}()
	n.peers = append(n.peers, c)
	return c
}

// await waits for a message of a kind, for at most wait; 0: no limit.
func (n *ntttcp) await(c *control, kind string, wait time.Duration) (message, error) {
	if wait == 0 {
		wait = math.MaxInt64
	}
	m, err := c.expect(kind, wait)
	switch {
	case isClosed(n.stop):
		return m, errStopped
	case err != nil:
		return m, fmt.Errorf("synchronise: %w; with Microsoft's NTttcp at the other end give -ns to both ends", err)
	}
	return m, nil
}

// dialSync connects to a receiver's synchronisation port. It tries again until the
// receiver listens.
func (n *ntttcp) dialSync(to netip.AddrPort, threads int) (*control, error) {
	deadline := time.Now().Add(patience)
	for {
		conn, err := net.DialTimeout("tcp", to.String(), handshakeTimeout)
		if err == nil {
			c := n.peer(conn)
			return c, c.send(message{Type: typeNTttcp, Version: protocolVersion, Threads: threads})
		}
		select {
		case <-n.stop:
			return nil, errStopped
		case <-time.After(50 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("synchronise with the receiver at %v: %w; start the receiver first, without -ns, and with the same -p", to, unwrapErrno(err))
		}
	}
}

// acceptSync waits for a sender on the synchronisation port.
func (n *ntttcp) acceptSync(l *net.TCPListener, threads int) (*control, error) {
	conn, err := acceptUntil(l, n.wait, n.stop)
	switch {
	case errors.Is(err, net.ErrClosed):
		return nil, errStopped
	case isTimeout(err):
		return nil, fmt.Errorf("no sender connected to %v within %v (-to); start a sender without -ns", l.Addr(), n.wait)
	case err != nil:
		return nil, fmt.Errorf("wait for a sender on %v: %w", l.Addr(), err)
	}
	c := n.peer(conn)
	m, err := n.await(c, typeNTttcp, handshakeTimeout)
	if err == nil && m.Threads != threads {
		err = fmt.Errorf("the sender has %d threads and the receiver %d; give both ends the same number in -m", m.Threads, threads)
	}
	if err != nil {
		return nil, c.refuse(err)
	}
	return c, nil
}
