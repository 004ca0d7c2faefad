package traffic

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"windtunnel/lab/suite"
)

// client connects to the server, sends it the run's settings, and reports the figures of
// both ends.
type client struct {
	to   netip.AddrPort
	spec Spec
	stop <-chan struct{}
	// stderr receives the line "begun" when traffic begins.
	stderr io.Writer

	control *control
	crew    *crew
}

// graceTimeout is the time after the end of the run for data in flight to arrive. Then
// the connection is cut.
const graceTimeout = 300 * time.Millisecond

// run sends the traffic and returns the figures of both ends. Before that it makes the
// trials that the rate needs.
func (c *client) run() (Result, error) {
	if err := c.search(); err != nil {
		return Result{}, err
	}
	return c.once()
}

func (c *client) once() (Result, error) {
	conn, err := net.DialTimeout("tcp", c.to.String(), handshakeTimeout)
	if err != nil {
		return Result{}, connectError(c.to, unwrapErrno(err))
	}
	c.control = newControl(conn, "server "+c.to.String())
	defer c.control.close()
	c.crew = newCrew()
	defer c.crew.close()
	if err := c.join(); err != nil {
		return Result{}, c.explain(err)
	}
	c.crew.prepare()
	result, err := c.measure()
	if err != nil {
		return Result{}, c.explain(err)
	}
	return result, errNothing(result)
}

// explain returns the server's error if there is one, because it is the cause of err.
func (c *client) explain(err error) error {
	if said := c.control.said(200 * time.Millisecond); said != nil {
		return said
	}
	return c.control.refuse(err)
}

// join opens the data sockets to the server.
func (c *client) join() error {
	token := rand.Uint64()
	if err := c.control.send(message{Type: typeHello, Version: protocolVersion, Token: token, Spec: &c.spec}); err != nil {
		return err
	}
	ready, err := c.control.expect(typeReady, handshakeTimeout)
	if err != nil {
		return err
	}
	flows := c.spec.flows()
	if c.spec.Workload.Kind.UDP() && len(ready.Ports) != len(flows) {
		return fmt.Errorf("the %s opened %d ports for %d flows; use the same windtunnel on both ends", c.control.peer, len(ready.Ports), len(flows))
	}
	for i, f := range flows {
		if err := c.connect(f, ready.Ports[min(i, len(ready.Ports)-1)], greeting{token, uint32(f.Index)}); err != nil {
			return err
		}
	}
	_, err = c.control.expect(typeJoined, handshakeTimeout)
	return err
}

// connect opens the socket of a flow and makes its worker.
func (c *client) connect(f flow, port uint16, g greeting) error {
	to := netip.AddrPortFrom(c.to.Addr(), port)
	if c.spec.Workload.Kind == suite.TCPCRR {
		w, err := c.crew.enlist(c.spec, f, true, -1)
		if err != nil {
			return err
		}
		return w.dials(c.spec, to)
	}
	fd, err := c.dial(to, g)
	if err != nil {
		return err
	}
	_, err = c.crew.enlist(c.spec, f, true, fd)
	return err
}

func (c *client) dial(to netip.AddrPort, g greeting) (fd int, err error) {
	deadline := time.Now().Add(handshakeTimeout)
	if !c.spec.Workload.Kind.UDP() {
		if fd, err = dialTCP(to, netip.Addr{}, c.spec.socketOptions(), deadline); err != nil {
			return -1, err
		}
		err = g.greet(fd)
	} else {
		if fd, err = dialOnce(unix.SOCK_DGRAM, to, netip.Addr{}, c.spec.socketOptions(), deadline); err != nil {
			return -1, fmt.Errorf("join %v: %w", to, err)
		}
		err = g.greetDatagrams(fd, deadline)
	}
	if err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("join %v: %w", to, err)
	}
	return fd, nil
}

func (c *client) measure() (Result, error) {
	stop, release := first(c.stop, c.control.stop, c.control.lost)
	defer release()
	if err := c.crew.start(); err != nil {
		return Result{}, err
	}
	if err := c.control.send(message{Type: typeStart}); err != nil {
		return Result{}, err
	}
	if !c.spec.Search {
		fmt.Fprintln(c.stderr, "begun")
	}
	cond := &conductor{crew: c.crew, timing: c.spec.Timing, peer: c.control.counted}
	if err := cond.run(stop); err != nil {
		return Result{}, err
	}
	interrupted := isClosed(c.stop) || isClosed(c.control.stop)
	if err := c.finish(); err != nil {
		return Result{}, err
	}
	local, err := cond.end("client", c.control.peer, interrupted)
	if err != nil {
		return Result{}, err
	}
	remote, err := c.control.expect(typeResult, stuckTimeout+handshakeTimeout)
	return Result{Version: ResultVersion, Role: "client", Peer: c.to.String(), Spec: c.spec, Interrupted: interrupted, Local: local, Remote: remote.End}, err
}

// finish ends the traffic. First it ends the flows that this end sends. Then it sends the
// server a message to end the flows that the server sends. Data in flight still arrives.
func (c *client) finish() error {
	if isClosed(c.stop) {
		c.control.send(message{Type: typeStop}) // if the server is gone, the next steps notice it
	}
	within(graceTimeout, c.crew.drove, c.control.lost)
	if err := c.control.send(message{Type: typeDone}); err != nil {
		c.crew.close()
		return err
	}
	within(graceTimeout, c.crew.done, c.control.lost)
	return c.crew.close()
}

// said returns the reason why the peer is lost, if it is known within the time.
func (c *control) said(wait time.Duration) error {
	select {
	case <-c.lost:
		return c.gone()
	case <-time.After(wait):
		return nil
	}
}
