package traffic

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"windtunnel/lab/suite"
)

// server listens for clients. The control connection uses its port. TCP data use the next
// port. Each flow of UDP data has a port: one of the next 15, or a free one that the kernel selects.
type server struct {
	at     netip.AddrPort
	wait   time.Duration // longest wait for a client; 0 = unlimited
	once   bool          // end after one run
	stdout io.Writer
	stderr io.Writer
	stop   <-chan struct{}
}

// run serves clients one after another.
func (s *server) run() error {
	listener, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(s.at))
	if err != nil {
		return listenError("TCP", s.at, unwrapErrno(err))
	}
	defer listener.Close()
	fmt.Fprintln(s.stdout, "ready")
	for {
		conn, err := s.accept(listener)
		if err != nil || conn == nil {
			return err
		}
		result, err := s.serve(conn)
		if err == nil && result.Spec.Search {
			continue
		}
		if err == nil {
			err = printLine(s.stdout, result)
		}
		if s.once {
			return err
		}
		if err != nil {
			fmt.Fprintln(s.stderr, "windtunnel traffic server:", err)
		}
	}
}

// accept waits for a client. The connection is nil if the server was told to end.
func (s *server) accept(listener *net.TCPListener) (net.Conn, error) {
	conn, err := acceptUntil(listener, s.wait, s.stop)
	if errors.Is(err, net.ErrClosed) {
		return nil, nil
	}
	if isTimeout(err) {
		return nil, fmt.Errorf("no client connected to %v within %v; start one (windtunnel traffic client) or give a longer -wait", s.at, s.wait)
	}
	return conn, err
}

// acceptUntil waits for a connection, for at most wait; 0: no limit. When stop is
// closed, it closes the listener and returns net.ErrClosed.
func acceptUntil(l *net.TCPListener, wait time.Duration, stop <-chan struct{}) (net.Conn, error) {
	accepted := make(chan struct{})
	defer close(accepted)
	go func() {
		select {
		case <-stop:
			l.Close()
		case <-accepted:
		}
	}()
	if wait > 0 {
		if err := l.SetDeadline(time.Now().Add(wait)); err != nil {
			return nil, fmt.Errorf("wait for a connection to %v: %w", l.Addr(), err)
		}
	}
	return l.Accept()
}

func isTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}

func unwrapErrno(err error) error {
	var e unix.Errno
	if errors.As(err, &e) {
		return e
	}
	return err
}

// serverRun is one run of a server.
type serverRun struct {
	*server
	control *control
	spec    Spec
	token   uint64
	crew    *crew
}

func (s *server) serve(conn net.Conn) (Result, error) {
	c := newControl(conn, "client "+conn.RemoteAddr().String())
	defer c.close()
	hello, err := c.expect(typeHello, handshakeTimeout)
	if err != nil {
		return Result{}, c.refuse(err)
	}
	ss := &serverRun{server: s, control: c, spec: *hello.Spec, token: hello.Token, crew: newCrew()}
	defer ss.crew.close()
	start, err := ss.join()
	if err != nil {
		return Result{}, c.refuse(err)
	}
	if err := start(); err != nil {
		return Result{}, c.refuse(err)
	}
	result, err := ss.measure(conn.RemoteAddr().String())
	if err != nil {
		return Result{}, c.refuse(err)
	}
	return result, c.send(message{Type: typeResult, End: &result.Local})
}

// join opens the data sockets with the client. start waits for its start message.
func (ss *serverRun) join() (start func() error, err error) {
	if ss.spec.Workload.Kind.UDP() {
		return ss.joinUDP()
	}
	backlog := max(128, 2*len(ss.spec.flows()))
	if ss.spec.Workload.Kind == suite.TCPCRR {
		backlog = 4096
	}
	at := netip.AddrPortFrom(ss.at.Addr(), ss.at.Port()+1)
	o := ss.spec.socketOptions()
	listening, err := listenTCP(at, o, backlog)
	if err != nil {
		return nil, err
	}
	defer unix.Close(listening)
	if err := ss.control.send(message{Type: typeReady, Ports: []uint16{at.Port()}}); err != nil {
		return nil, err
	}
	if ss.spec.Workload.Kind == suite.TCPCRR {
		err = ss.shareListener(listening)
	} else {
		err = ss.acceptFlows(listening, o)
	}
	if err != nil {
		return nil, err
	}
	return ss.awaitStart, ss.joined()
}

// joined makes the threads, and tells the client that it can start the traffic.
func (ss *serverRun) joined() error {
	ss.crew.prepare()
	if err := ss.crew.start(); err != nil {
		return err
	}
	return ss.control.send(message{Type: typeJoined})
}

func (ss *serverRun) awaitStart() error {
	_, err := ss.control.expect(typeStart, handshakeTimeout)
	return err
}

// shareListener gives every worker a descriptor of the same listening socket.
func (ss *serverRun) shareListener(listening int) error {
	for _, f := range ss.spec.flows() {
		fd, err := unix.FcntlInt(uintptr(listening), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("share the listening socket: %w", err)
		}
		w, err := ss.crew.enlist(ss.spec, f, false, fd)
		if err != nil {
			return err
		}
		w.noDelay = ss.spec.Workload.NoDelay
	}
	return nil
}

func (ss *serverRun) acceptFlows(listening int, o socketOptions) error {
	flows := ss.spec.flows()
	joined := make([]bool, len(flows))
	deadline := time.Now().Add(handshakeTimeout)
	for missing := len(flows); missing > 0; {
		fd, err := acceptBy(listening, deadline)
		if err != nil {
			return fmt.Errorf("%d of %d data connections of the %s arrived on port %d: %w; is the port let through?",
				len(flows)-missing, len(flows), ss.control.peer, ss.at.Port()+1, err)
		}
		g, err := readGreeting(fd, deadline)
		if err != nil || g.token != ss.token || int(g.index) >= len(flows) || joined[g.index] {
			unix.Close(fd) // of another run
			continue
		}
		if err := o.apply(fd, unix.SOCK_STREAM); err != nil {
			unix.Close(fd)
			return err
		}
		if _, err := ss.crew.enlist(ss.spec, flows[g.index], false, fd); err != nil {
			return err
		}
		joined[g.index] = true
		missing--
	}
	return nil
}

// joinUDP binds a socket for each flow. It uses the ports after the control port that the
// job owns, and then free ports that the kernel selects.
func (ss *serverRun) joinUDP() (start func() error, err error) {
	const share = 15
	var sockets []int
	var ports []uint16
	for i, f := range ss.spec.flows() {
		at := netip.AddrPortFrom(ss.at.Addr(), 0)
		if i < share {
			at = netip.AddrPortFrom(ss.at.Addr(), ss.at.Port()+1+uint16(i))
		}
		fd, err := listenUDP(at, ss.spec.socketOptions())
		if err != nil {
			return nil, err
		}
		if _, err := ss.crew.enlist(ss.spec, f, false, fd); err != nil {
			return nil, err
		}
		port, err := localPort(fd)
		if err != nil {
			return nil, err
		}
		sockets, ports = append(sockets, fd), append(ports, port)
	}
	if err := ss.control.send(message{Type: typeReady, Ports: ports}); err != nil {
		return nil, err
	}
	return func() error { return ss.answer(&answers{ss.token, sockets, make([]bool, len(sockets)), len(sockets)}) }, nil
}

// answer echoes greetings until the client starts the traffic.
func (ss *serverRun) answer(a *answers) error {
	deadline := time.Now().Add(2 * handshakeTimeout)
	for told := false; ; {
		if err := a.answer(); err != nil {
			return err
		}
		if a.left == 0 && !told {
			told = true
			if err := ss.joined(); err != nil {
				return err
			}
		}
		select {
		case m := <-ss.control.incoming:
			_, err := ss.control.is(m, typeStart)
			return err
		default:
		}
		switch {
		case isClosed(ss.control.lost):
			return ss.control.gone()
		case time.Now().After(deadline):
			return fmt.Errorf("%d of %d UDP flows of the %s did not arrive; is UDP let through between the ends?", a.left, len(a.sockets), ss.control.peer)
		}
	}
}

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// lateTimeout is the longest delay of the client's message that its traffic has ended, and of
// the server's message that its window is over.
const lateTimeout = 3 * time.Second

// measure counts in the window by the server's clock. The client ends the run. Until its
// message the server continues the traffic, so that no end stops in the window of the
// other.
func (ss *serverRun) measure(peer string) (Result, error) {
	c := ss.control
	stop, release := first(ss.stop, c.stop, c.done, c.lost)
	defer release()
	timing := ss.spec.Timing
	timing.Cooldown += lateTimeout
	cond := &conductor{crew: ss.crew, timing: timing, counted: func() {
		c.send(message{Type: typeCounted}) // if the client is gone, the next steps notice it
	}}
	if err := cond.run(stop); err != nil {
		return Result{}, err
	}
	interrupted := isClosed(ss.stop) || isClosed(c.stop)
	if isClosed(ss.stop) {
		c.send(message{Type: typeStop}) // if the client is gone, the next steps notice it
	}
	within(lateTimeout, c.done, c.lost)
	within(graceTimeout, ss.crew.done, c.lost)
	if err := ss.crew.close(); err != nil {
		return Result{}, err
	}
	if !isClosed(c.done) {
		return Result{}, c.unfinished()
	}
	end, err := cond.end("server", c.peer, interrupted)
	return Result{Version: ResultVersion, Role: "server", Peer: peer, Spec: ss.spec, Interrupted: interrupted, Local: end}, err
}

// unfinished is the error for a peer that did not send the message done.
func (c *control) unfinished() error {
	if isClosed(c.lost) {
		return c.gone()
	}
	return fmt.Errorf("the %s did not end the run when it was over; it hangs or the network between is down", c.peer)
}
