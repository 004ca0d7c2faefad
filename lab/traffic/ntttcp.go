package traffic

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"windtunnel/internal/lists"
	"windtunnel/lab/suite"
)

// ntttcpVersion is the version of NTttcp with these flags and formats.
const ntttcpVersion = "5.40"

const ntttcpUsage = `usage: windtunnel ntttcp -s|-r -m THREADS,CPU,RECEIVER [more mappings] [flags]

	-s, -r  work as a sender, as a receiver
	-m      one or more mappings: number of threads, processor or *, receiver's address;
	        a receiver listens on that address. Thread i uses port -p + i.
	-l      length of a buffer or datagram      [64K, UDP: 128]
	-n      buffers of each thread              [20K]; -t is then the longest time allowed
	-t      seconds to measure
	-wu -cd seconds before and after that do not count
	-p      first data port                     [5001]
	-ns     no synchronisation; needed on both ends where one is Microsoft's NTttcp
	-rb -sb socket buffers; -1 leaves them to the kernel
	-ndl    TCP_NODELAY, and no segment has bytes of two sends (MSG_EOR)
	-u      UDP
	-wa     MSG_WAITALL when receiving
	-a      outstanding I/O; accepted, blocking sockets have one
	-nic    the sender's own address
	-thr    KB/s of each thread at most (sender)
	-to     milliseconds to wait for the peer   [600000]; 0 = for ever
	-xml    [file] write the figures as XML     [xml.txt]
	-json   print the figures as one line of JSON too; NTttcp has no such flag
	-hpt    no lines for single threads
	-6 -4   IP version of names in -m
	-v      verbose
`

// NTttcp is Microsoft's NTttcp with the lab's engine. args are the arguments after the
// program's name. It prints NTttcp's output, or writes the file of -xml, and returns the
// exit code. Unlike NTttcp's, the exit code is not 0 if nothing was measured, or if the other end
// ended the run early.
//
// A command copied from NTttcp's documentation runs. Two ends of this program synchronise
// on port -p minus 1. If the other end is Microsoft's NTttcp, both ends need -ns; thread i
// then uses port -p + i without synchronisation.
//
// The first SIGINT, SIGTERM or SIGHUP ends the run, which prints its figures; a second one ends the program.
func NTttcp(args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 && slices.Contains([]string{"-h", "--help", "-help", "-?", "/?"}, strings.ToLower(args[0])) {
		if _, err := io.WriteString(stdout, ntttcpUsage); err != nil {
			fmt.Fprintln(stderr, "windtunnel ntttcp: print the help:", err)
			return 1
		}
		return 0
	}
	o, err := parseNTttcp(args)
	if err != nil {
		fmt.Fprintf(stderr, "windtunnel ntttcp: %v\n\n%s", err, ntttcpUsage)
		return 2
	}
	stop, release := onInterrupt()
	defer release()
	if err := (&ntttcp{options: o, stop: stop, stdout: stdout}).run(); err != nil {
		fmt.Fprintln(stderr, "windtunnel ntttcp:", err)
		return 1
	}
	return 0
}

// ntttcp is one run of NTttcp.
type ntttcp struct {
	options
	stop   <-chan struct{}
	stdout io.Writer

	crew    *crew
	threads []thread
	peers   []*control
	sockets []int // one for each thread: data sockets; on a TCP receiver listening sockets
}

// thread is one thread of a mapping, with the address and port of the receiver.
type thread struct {
	at  netip.AddrPort
	cpu int
}

// patience is the time for which a sender tries to reach its receiver.
const patience = 10 * time.Second

func (n *ntttcp) run() (err error) {
	if n.threads, err = n.resolve(); err != nil {
		return err
	}
	if n.xml != "" {
		if err := writable(n.xml); err != nil {
			return err
		}
	}
	fmt.Fprintf(n.stdout, "Copyright Version %s (windtunnel)\n", ntttcpVersion)
	n.explain()
	n.crew = newCrew()
	defer n.close()
	if n.sender {
		err = n.connect()
	} else {
		err = n.listen()
	}
	if err != nil {
		return err
	}
	n.crew.prepare()
	if err := n.crew.start(); err != nil {
		return err
	}
	if err := n.meet(); err != nil {
		return err
	}
	a, err := n.measure()
	if err != nil {
		return err
	}
	if n.xml != "" {
		err = a.writeXML()
	} else {
		err = a.printText(n.stdout)
	}
	if n.json {
		err = errors.Join(err, a.printJSON(n.stdout))
	}
	return errors.Join(err, n.complete(a))
}

// leastTime is the part of -t that each thread must measure. It is below 1 because the ends
// begin at different moments, and without -cd the end that finishes first stops the other.
const leastTime = 0.9

// complete returns an error if the other end ended the run early. An interrupt of this end is
// no error.
func (n *ntttcp) complete(a account) error {
	if isClosed(n.stop) {
		return nil
	}
	const remedy = "the figures are of that part only; keep the other end running, give both ends the same -t, -wu, -cd and -n, and not more threads than their CPUs can serve"
	for i, t := range a.threads {
		switch wanted := n.runTime.Seconds(); {
		case n.timed && t.seconds < leastTime*wanted:
			return fmt.Errorf("thread %d measured %.2f s of the %.3g s asked for (-t), because the other end ended or the network failed; %s", i, t.seconds, wanted, remedy)
		case !n.timed && !n.udp && t.bytes < n.buffers*int64(n.length) && t.seconds < leastTime*n.limit.Seconds():
			return fmt.Errorf("thread %d moved %d of %d bytes (-n × -l), because the other end ended or the network failed; %s", i, t.bytes, n.buffers*int64(n.length), remedy)
		}
	}
	return nil
}

// writable checks before the run that the figures can be written.
func writable(file string) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return fmt.Errorf("-xml: %w; choose a file that can be written", err)
	}
	return f.Close()
}

func (n *ntttcp) explain() {
	if !n.verbose {
		return
	}
	for _, note := range n.notes {
		fmt.Fprintln(n.stdout, "note:", note)
	}
	for i, p := range n.threads {
		fmt.Fprintf(n.stdout, "thread %d: %v, processor %d (-1 = any)\n", i, p.at, p.cpu)
	}
}

// resolve finds the address of every mapping and lists the threads.
func (n *ntttcp) resolve() ([]thread, error) {
	var threads []thread
	for _, m := range n.mappings {
		addr, err := n.lookup(m.receiver)
		if err != nil {
			return nil, err
		}
		n.ipv6 = n.ipv6 || addr.Is6()
		for range m.threads {
			threads = append(threads, thread{netip.AddrPortFrom(addr, uint16(n.port+len(threads))), m.cpu})
		}
	}
	return threads, nil
}

func (n *ntttcp) lookup(receiver string) (netip.Addr, error) {
	if a, err := netip.ParseAddr(receiver); err == nil {
		return a.Unmap(), nil
	}
	ips, err := net.LookupIP(receiver)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("-m: find the address of %q: %w", receiver, err)
	}
	for _, ip := range ips {
		a, ok := netip.AddrFromSlice(ip)
		if a = a.Unmap(); ok && a.Is6() == n.ipv6 {
			return a, nil
		}
	}
	return netip.Addr{}, fmt.Errorf("-m: %q has no address of the wanted IP version (-6, -4)", receiver)
}

func (n *ntttcp) socketOptions() socketOptions {
	return socketOptions{send: max(0, n.send), receive: max(0, n.receive), noDelay: n.noDelay, pacing: n.pace * 8 * kib}
}

// receivers returns the number of threads of each receiver in the mappings.
func (n *ntttcp) receivers() (order []netip.Addr, threads map[netip.Addr]int) {
	threads = map[netip.Addr]int{}
	for _, p := range n.threads {
		if threads[p.at.Addr()]++; threads[p.at.Addr()] == 1 {
			order = append(order, p.at.Addr())
		}
	}
	return order, threads
}

// connect starts the sender: it connects every thread's socket.
func (n *ntttcp) connect() error {
	if err := n.announce(); err != nil {
		return err
	}
	from := netip.Addr{}
	if n.nic != "" {
		var err error
		if from, err = netip.ParseAddr(n.nic); err != nil {
			return fmt.Errorf("-nic %q is not an address", n.nic)
		}
	}
	for i, p := range n.threads {
		fd, err := n.dial(p.at, from)
		if err != nil {
			return err
		}
		if err := n.enlist(i, fd); err != nil {
			return err
		}
	}
	return nil
}

// announce synchronises with every receiver. After it the receivers' data sockets are
// open.
func (n *ntttcp) announce() error {
	if n.noSync {
		return nil
	}
	order, threads := n.receivers()
	for _, addr := range order {
		p, err := n.dialSync(netip.AddrPortFrom(addr, uint16(n.port-1)), threads[addr])
		if err != nil {
			return err
		}
		if _, err := n.await(p, typeReady, n.wait); err != nil {
			return err
		}
	}
	return nil
}

func (n *ntttcp) dial(to netip.AddrPort, from netip.Addr) (int, error) {
	deadline := time.Now().Add(patience)
	if !n.udp {
		return dialTCP(to, from, n.socketOptions(), deadline)
	}
	fd, err := dialOnce(unix.SOCK_DGRAM, to, from, n.socketOptions(), deadline)
	if err != nil {
		return -1, connectError(to, err)
	}
	return fd, nil
}

// listen starts the receiver: it opens every thread's socket.
func (n *ntttcp) listen() error {
	for _, p := range n.threads {
		fd, err := n.open(p.at)
		if err != nil {
			return err
		}
		n.sockets = append(n.sockets, fd)
	}
	if err := n.admit(); err != nil {
		return err
	}
	var deadline time.Time
	if n.wait > 0 {
		deadline = time.Now().Add(n.wait)
	}
	for i := range n.threads {
		fd, err := n.accept(i, deadline)
		if err != nil {
			return err
		}
		if err := n.enlist(i, fd); err != nil {
			return err
		}
	}
	if n.udp && n.noSync {
		if err := n.firstDatagram(deadline); err != nil {
			return err
		}
	}
	return nil
}

// meet waits until the threads of both ends exist, because the time of both counts from the
// receiver's next message.
func (n *ntttcp) meet() error {
	awaited := typeJoined
	if n.sender {
		awaited = typeStart
		if err := n.tell(typeJoined); err != nil {
			return err
		}
	}
	for _, p := range n.peers {
		if _, err := n.await(p, awaited, n.wait); err != nil {
			return err
		}
	}
	return nil
}

// started tells the senders to begin. The receiver's workers already count, so no sender ends
// before the receiver's time is over.
func (n *ntttcp) started() error { return n.tell(typeStart) }

// tell sends a message of this type to each synchronised peer.
func (n *ntttcp) tell(kind string) error {
	for _, p := range n.peers {
		if err := p.send(message{Type: kind}); err != nil {
			return err
		}
	}
	return nil
}

func (n *ntttcp) open(at netip.AddrPort) (int, error) {
	if n.udp {
		return listenUDP(at, n.socketOptions())
	}
	return listenTCP(at, n.socketOptions(), 16)
}

// admit accepts the sender on the synchronisation port.
func (n *ntttcp) admit() error {
	if n.noSync {
		return nil
	}
	order, threads := n.receivers()
	for _, addr := range order {
		at := netip.AddrPortFrom(addr, uint16(n.port-1))
		l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(at))
		if err != nil {
			return listenError("TCP", at, unwrapErrno(err))
		}
		p, err := n.acceptSync(l, threads[addr])
		l.Close() // one sender is enough; a stop may have closed it already
		if err != nil {
			return err
		}
		if err := p.send(message{Type: typeReady, Ports: []uint16{uint16(n.port)}}); err != nil {
			return err
		}
	}
	return nil
}

// accept accepts the sender's connection for a thread. A UDP thread needs no connection.
func (n *ntttcp) accept(i int, deadline time.Time) (int, error) {
	if n.udp {
		fd := n.sockets[i]
		n.sockets[i] = -1
		return fd, nil
	}
	for {
		fd, err := acceptBy(n.sockets[i], time.Now())
		if err == nil {
			return fd, n.socketOptions().apply(fd, unix.SOCK_STREAM)
		}
		switch {
		case isClosed(n.stop):
			if have := i + n.waiting(i); have > 0 {
				return -1, fmt.Errorf("the run was interrupted: %d of %d threads have a sender, and the first one without is on port %d. The run begins when all have one, so nothing was measured; start the other senders, or give fewer threads in -m", have, len(n.threads), n.threads[i].at.Port())
			}
			return -1, errStopped
		case !errors.Is(err, unix.ETIMEDOUT):
			return -1, err
		case !deadline.IsZero() && time.Now().After(deadline):
			return -1, fmt.Errorf("no sender connected to %v within %v (-to); start one with the same -p and -m", n.threads[i].at, n.wait)
		}
	}
}

// waiting returns the number of threads from thread i on whose connection is not accepted yet.
func (n *ntttcp) waiting(i int) int {
	fds := lists.Map(n.sockets[i:], func(fd int) unix.PollFd { return unix.PollFd{Fd: int32(fd), Events: unix.POLLIN} })
	k, _ := unix.Poll(fds, 0) // after an error no thread counts
	return max(k, 0)
}

// firstDatagram waits until a datagram arrives on a socket of any thread.
func (n *ntttcp) firstDatagram(deadline time.Time) error {
	fds := lists.Map(n.crew.workers, func(w *worker) unix.PollFd { return unix.PollFd{Fd: int32(w.fd), Events: unix.POLLIN} })
	for {
		k, err := unix.Poll(fds, int(callTimeout.Milliseconds()))
		switch {
		case k > 0:
			return nil
		case err != nil && !errors.Is(err, unix.EINTR):
			return fmt.Errorf("wait for the first datagram: %w", err)
		case isClosed(n.stop):
			return errStopped
		case !deadline.IsZero() && time.Now().After(deadline):
			return fmt.Errorf("no datagram arrived on port %d and those after it within %v (-to); start a sender with -u", n.port, n.wait)
		}
	}
}

// idleEnd is the time without a datagram after which a UDP receiver that counts buffers
// ends, if the ends do not synchronise.
const idleEnd = 2 * time.Second

// enlist adds the worker of thread i.
func (n *ntttcp) enlist(i, fd int) (err error) {
	role, size := roleReceive, n.length
	if n.sender {
		role = roleSend
	} else if n.udp {
		size = 64 << 10 // the sender's -l may differ
	}
	w := n.crew.add(&worker{
		fd: fd, cpu: n.threads[i].cpu, tcp: !n.udp, tolerates: true, anySize: true,
		flow: flow{Index: i, Direction: string(suite.Forward), Role: role},
	})
	if !n.timed {
		w.limit = n.buffers * int64(n.length)
	}
	if n.sender && n.pace > 0 {
		w.pace.interval = float64(n.length) * 1e9 / float64(n.pace*kib)
	}
	w.buf, w.unmap, err = newBuffer(size)
	switch {
	case err != nil:
	case n.sender && n.udp:
		w.loop = (*worker).sendDatagrams
	case n.sender:
		w.loop = (*worker).sendStream
		if n.noDelay {
			w.flags = packetPerSend
		}
	case n.udp:
		w.loop, w.until = (*worker).receiveDatagrams, closing
		wait := drainTimeout
		if !n.timed && n.noSync {
			wait = idleEnd
		}
		if !n.timed {
			w.idleEnd, w.mayEnd = wait.Nanoseconds(), n.sendersEnded
		}
		err = setTimeouts(fd, wait)
	default:
		w.loop, w.until = (*worker).receiveStream, closing
		if n.waitAll {
			w.flags = unix.MSG_WAITALL
		}
	}
	return err
}

// sendersEnded reports whether no synchronised sender still sends. The datagrams that it
// sent can still wait in the receiver's sockets.
func (n *ntttcp) sendersEnded() bool {
	return !slices.ContainsFunc(n.peers, func(c *control) bool { return !isClosed(c.lost) })
}

// measure runs the traffic and returns the account.
func (n *ntttcp) measure() (account, error) {
	ends := []<-chan struct{}{n.stop}
	if n.udp && !n.sender && n.timed {
		for _, p := range n.peers {
			ends = append(ends, p.lost)
		}
	}
	stop, release := first(ends...)
	defer release()
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return account{}, err
	}
	cond := &conductor{crew: n.crew, timing: n.timing(), machine: func() (machineCounters, error) { return readMachine(proc, n.udp) }}
	if !n.sender && len(n.peers) > 0 {
		cond.started = n.started
	}
	fmt.Fprintln(n.stdout, "Network activity progressing...")
	if err := cond.run(stop); err != nil {
		return account{}, err
	}
	grace := graceTimeout
	if !n.sender && len(n.peers) > 0 {
		grace = lateTimeout // the sender's time may begin and end later
	}
	within(grace, n.crew.done, n.stop)
	if err := n.crew.close(); err != nil {
		return account{}, err
	}
	if err := n.crew.fault(); err != nil {
		return account{}, err
	}
	window, err := cond.window()
	if err != nil {
		return account{}, err
	}
	return n.account(window, megahertz(proc))
}

func (n *ntttcp) timing() suite.Timing {
	if n.timed {
		return suite.Timing{Warmup: n.warmup, Duration: n.runTime, Cooldown: n.cooldown}
	}
	return suite.Timing{Duration: n.limit}
}

func (n *ntttcp) account(window span, mhz float64) (account, error) {
	name, err := os.Hostname()
	if err != nil {
		return account{}, fmt.Errorf("read the host's name: %w", err)
	}
	a := account{options: n.options, computer: name, usage: window.machine, mhz: mhz}
	for _, w := range n.crew.workers {
		f, err := w.figures()
		if err != nil {
			return account{}, err
		}
		a.threads = append(a.threads, threadAccount{f.Seconds, f.Bytes, f.Calls})
		a.seconds = max(a.seconds, f.Seconds)
	}
	if a.bytes() == 0 {
		return account{}, fmt.Errorf("no data passed within the %.3f s measured; check that the network between the ends carries packets of the full size", window.seconds)
	}
	return a, nil
}

// close closes all sockets and connections of a run.
func (n *ntttcp) close() {
	n.crew.close()
	for _, fd := range n.sockets {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
	for _, p := range n.peers {
		p.close()
	}
}

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
