package traffic

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"windtunnel/lab/suite"
)

// socketOptions are the options of a data socket, set before it connects or listens.
type socketOptions struct {
	send, receive int   // SO_SNDBUF and SO_RCVBUF, bytes; 0 = the kernel's autotuning
	noDelay       bool  // TCP_NODELAY
	pacing        int64 // SO_MAX_PACING_RATE, payload bits/s; 0 = none
	tos           tosOption
}

// tosOption is the option for the TOS byte of IPv4 packets, or the traffic class of IPv6
// packets; the zero value: none.
type tosOption struct{ level, name, value int }

func tosOf(w suite.Workload) tosOption {
	switch {
	case w.DSCP == 0:
		return tosOption{}
	case w.IPVersion == 6:
		return tosOption{unix.IPPROTO_IPV6, unix.IPV6_TCLASS, w.DSCP.TOS()}
	}
	return tosOption{unix.IPPROTO_IP, unix.IP_TOS, w.DSCP.TOS()}
}

// callTimeout limits every blocking call on a data socket, so that its thread reads the
// phase even without traffic.
const callTimeout = 100 * time.Millisecond

// drainTimeout is the time for which a receiver waits for late datagrams.
const drainTimeout = 50 * time.Millisecond

// handshakeTimeout limits each step before the traffic.
const handshakeTimeout = 5 * time.Second

func newSocket(kind int, addr netip.Addr, o socketOptions) (fd int, err error) {
	family := unix.AF_INET
	if addr.Is6() {
		family = unix.AF_INET6
	}
	if fd, err = unix.Socket(family, kind|unix.SOCK_CLOEXEC, 0); err != nil {
		return -1, fmt.Errorf("make a socket: %w", err)
	}
	if err := o.apply(fd, kind); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

func (o socketOptions) apply(fd, kind int) error {
	for _, b := range []struct {
		name, force, size int
		label             string
	}{
		{unix.SO_SNDBUF, unix.SO_SNDBUFFORCE, o.send, "SO_SNDBUF"},
		{unix.SO_RCVBUF, unix.SO_RCVBUFFORCE, o.receive, "SO_RCVBUF"},
	} {
		if b.size <= 0 {
			continue
		}
		// Only root may exceed net.core.[rw]mem_max.
		if unix.SetsockoptInt(fd, unix.SOL_SOCKET, b.force, b.size) == nil {
			continue
		}
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, b.name, b.size); err != nil {
			return fmt.Errorf("set %s to %d bytes: %w", b.label, b.size, err)
		}
	}
	if o.noDelay && kind == unix.SOCK_STREAM {
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1); err != nil {
			return fmt.Errorf("set TCP_NODELAY: %w", err)
		}
	}
	if o.pacing > 0 && kind == unix.SOCK_STREAM {
		// TCP spreads each call's segments, without fq on the device by itself.
		// Its timers come late now and then and it does not make up for that;
		// the sender's pacer holds the rate, and TCP gets some headroom.
		headroom := o.pacing/8 + o.pacing/32
		if err := unix.SetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE, uint64(max(1, headroom))); err != nil {
			return fmt.Errorf("set SO_MAX_PACING_RATE to %d bit/s: %w", o.pacing, err)
		}
	}
	if o.tos.value > 0 {
		if err := unix.SetsockoptInt(fd, o.tos.level, o.tos.name, o.tos.value); err != nil {
			return fmt.Errorf("set the DSCP %s: %w", suite.DSCP(o.tos.value>>2), err)
		}
	}
	return setTimeouts(fd, callTimeout)
}

// setTimeouts limits the duration of a socket's blocking calls.
func setTimeouts(fd int, d time.Duration) error {
	tv := unix.NsecToTimeval(d.Nanoseconds())
	for _, name := range []int{unix.SO_RCVTIMEO, unix.SO_SNDTIMEO} {
		if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, name, &tv); err != nil {
			return fmt.Errorf("set a timeout of %v on a socket: %w", d, err)
		}
	}
	return nil
}

// dialTCP connects, and tries again while the connection is refused, until the
// deadline.
func dialTCP(to netip.AddrPort, from netip.Addr, o socketOptions, deadline time.Time) (int, error) {
	for {
		fd, err := dialOnce(unix.SOCK_STREAM, to, from, o, deadline)
		if err == nil {
			return fd, nil
		}
		if !errors.Is(err, unix.ECONNREFUSED) || time.Now().After(deadline) {
			return -1, connectError(to, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// dialOnce connects a socket of a kind (unix.SOCK_STREAM or SOCK_DGRAM). The zero from is any address.
func dialOnce(kind int, to netip.AddrPort, from netip.Addr, o socketOptions, deadline time.Time) (int, error) {
	fd, err := newSocket(kind, to.Addr(), o)
	if err != nil {
		return -1, err
	}
	err = bindTo(fd, netip.AddrPortFrom(from, 0))
	if err == nil {
		err = connectBy(fd, to, deadline)
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// connectBy connects a blocking socket, until a deadline. SO_SNDTIMEO can end a call of
// connect early. The kernel continues the handshake, and connectBy calls connect again.
func connectBy(fd int, to netip.AddrPort, deadline time.Time) error {
	sa, err := sockaddr(to)
	if err != nil {
		return err
	}
	for {
		err := unix.Connect(fd, sa)
		switch {
		case err == nil || errors.Is(err, unix.EISCONN):
			return nil
		case !errors.Is(err, unix.EINTR) && !errors.Is(err, unix.EINPROGRESS) && !errors.Is(err, unix.EALREADY):
			return err
		case time.Now().After(deadline):
			return unix.ETIMEDOUT
		}
	}
}

func connectError(to netip.AddrPort, err error) error {
	remedy := "check the address and that the network between them is up"
	if errors.Is(err, unix.ECONNREFUSED) {
		remedy = "start the receiving end first, with the same port"
	}
	return fmt.Errorf("connect to %v: %w; %s", to, err, remedy)
}

// listenTCP makes a listening socket. The accepted connections inherit its options.
func listenTCP(at netip.AddrPort, o socketOptions, backlog int) (int, error) {
	fd, err := newSocket(unix.SOCK_STREAM, at.Addr(), o)
	if err != nil {
		return -1, err
	}
	if err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err == nil {
		if err = bindTo(fd, at); err == nil {
			err = unix.Listen(fd, backlog)
		}
	}
	if err != nil {
		unix.Close(fd)
		return -1, listenError("TCP", at, err)
	}
	return fd, nil
}

// listenUDP makes a bound datagram socket.
func listenUDP(at netip.AddrPort, o socketOptions) (int, error) {
	fd, err := newSocket(unix.SOCK_DGRAM, at.Addr(), o)
	if err != nil {
		return -1, err
	}
	if err := bindTo(fd, at); err != nil {
		unix.Close(fd)
		return -1, listenError("UDP", at, err)
	}
	return fd, nil
}

func listenError(protocol string, at netip.AddrPort, err error) error {
	remedy := ""
	switch {
	case errors.Is(err, unix.EADDRINUSE):
		remedy = "; another program uses the port: end it (ss -lnp shows it) or choose another port"
	case errors.Is(err, unix.EADDRNOTAVAIL):
		remedy = "; the address must be one of this machine's own (ip address shows them)"
	case errors.Is(err, unix.EACCES):
		remedy = "; ports below 1024 need root"
	}
	return fmt.Errorf("listen on %s %v: %w%s", protocol, at, err, remedy)
}

// acceptBy waits for a connection until the deadline.
func acceptBy(fd int, deadline time.Time) (int, error) {
	for {
		conn, _, err := unix.Accept4(fd, unix.SOCK_CLOEXEC)
		if err == nil {
			return conn, nil
		}
		again := errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) || errors.Is(err, unix.ECONNABORTED)
		if !again {
			return -1, fmt.Errorf("accept a connection: %w", err)
		}
		if time.Now().After(deadline) {
			return -1, unix.ETIMEDOUT
		}
	}
}

// bindTo binds a socket. For the zero address the kernel selects the address.
func bindTo(fd int, at netip.AddrPort) error {
	if !at.Addr().IsValid() {
		return nil
	}
	sa, err := sockaddr(at)
	if err != nil {
		return err
	}
	return unix.Bind(fd, sa)
}

func localPort(fd int) (uint16, error) {
	sa, err := unix.Getsockname(fd)
	if err != nil {
		return 0, fmt.Errorf("read a socket's port: %w", err)
	}
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		return uint16(sa.Port), nil
	case *unix.SockaddrInet6:
		return uint16(sa.Port), nil
	}
	return 0, fmt.Errorf("read a socket's port: its address is of type %T", sa)
}

func sockaddr(a netip.AddrPort) (unix.Sockaddr, error) {
	if a.Addr().Is4() {
		return &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}, nil
	}
	zone, err := zoneID(a.Addr().Zone())
	return &unix.SockaddrInet6{Port: int(a.Port()), ZoneId: zone, Addr: a.Addr().As16()}, err
}

func zoneID(zone string) (uint32, error) {
	if zone == "" {
		return 0, nil
	}
	dev, err := net.InterfaceByName(zone)
	if err != nil {
		return 0, fmt.Errorf("find the device of zone %q: %w", zone, err)
	}
	return uint32(dev.Index), nil
}

// raw converts an address to the kernel's form, for connectSocket.
func raw(a netip.AddrPort) (r rawAddress, err error) {
	binary.BigEndian.PutUint16(r.storage[2:], a.Port())
	if a.Addr().Is4() {
		binary.NativeEndian.PutUint16(r.storage[:], unix.AF_INET)
		ip := a.Addr().As4()
		copy(r.storage[4:], ip[:])
		r.length = unix.SizeofSockaddrInet4
		return r, nil
	}
	zone, err := zoneID(a.Addr().Zone())
	binary.NativeEndian.PutUint16(r.storage[:], unix.AF_INET6)
	ip := a.Addr().As16()
	copy(r.storage[8:], ip[:])
	binary.NativeEndian.PutUint32(r.storage[24:], zone)
	r.length = unix.SizeofSockaddrInet6
	return r, err
}
