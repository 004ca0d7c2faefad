package agent

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"golang.org/x/net/icmp"
	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
	"golang.org/x/sys/unix"
)

const echoID = 0x7774

// openEcho opens a raw ICMP socket that forbids fragmentation, or a ping socket if the
// process may not open raw sockets.
func openEcho(to netip.Addr) (net.PacketConn, error) {
	network, level, option, do := "ip4:icmp", unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_DO
	if to.Is6() {
		network, level, option, do = "ip6:ipv6-icmp", unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_DO
	}
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var setting error
		err := c.Control(func(fd uintptr) { setting = unix.SetsockoptInt(int(fd), level, option, do) })
		return errors.Join(err, setting)
	}}
	c, err := config.ListenPacket(context.Background(), network, "")
	if errors.Is(err, unix.EPERM) {
		return openPing(to, level, option, do)
	}
	return c, err
}

// openPing opens an ICMP socket that sends echo requests only. It needs no privilege if
// net.ipv4.ping_group_range has a group of the process.
func openPing(to netip.Addr, level, option, value int) (net.PacketConn, error) {
	family, protocol := unix.AF_INET, unix.IPPROTO_ICMP
	if to.Is6() {
		family, protocol = unix.AF_INET6, unix.IPPROTO_ICMPV6
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, protocol)
	if errors.Is(err, unix.EACCES) {
		return nil, fmt.Errorf("send an echo request: user %d has no permission; log in as root, or run `sysctl net.ipv4.ping_group_range='0 2147483647'` as root", os.Geteuid())
	}
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	f := os.NewFile(uintptr(fd), "ping")
	defer f.Close() // the connection has a duplicate
	if err := unix.SetsockoptInt(fd, level, option, value); err != nil {
		return nil, os.NewSyscallError("setsockopt", err)
	}
	c, err := net.FilePacketConn(f)
	return pingConn{c}, err
}

// pingConn is a ping socket with the interface of a raw ICMP socket. The kernel replaces the
// identifier of a request, and delivers only the replies to it.
type pingConn struct{ net.PacketConn }

func (c pingConn) WriteTo(b []byte, to net.Addr) (int, error) {
	return c.PacketConn.WriteTo(b, &net.UDPAddr{IP: to.(*net.IPAddr).IP})
}

func (c pingConn) ReadFrom(b []byte) (int, net.Addr, error) {
	n, from, err := c.PacketConn.ReadFrom(b)
	if n >= 6 {
		binary.BigEndian.PutUint16(b[4:], echoID)
	}
	return n, from, err
}

// pingOnce sends one echo request and waits for its reply.
func pingOnce(c net.PacketConn, to netip.Addr, seq, payload int, wait time.Duration) error {
	request := icmp.Message{Type: ipv4.ICMPTypeEcho, Body: &icmp.Echo{ID: echoID, Seq: seq, Data: make([]byte, max(payload, 0))}}
	if to.Is6() {
		request.Type = ipv6.ICMPTypeEchoRequest // the kernel fills in its checksum
	}
	b, err := request.Marshal(nil)
	if err != nil {
		return err
	}
	if _, err := c.WriteTo(b, &net.IPAddr{IP: to.AsSlice()}); err != nil {
		time.Sleep(wait / 10)
		return fmt.Errorf("send: %w", err)
	}
	if err := c.SetReadDeadline(time.Now().Add(wait)); err != nil {
		return err
	}
	buf := make([]byte, 128<<10)
	for {
		n, _, err := c.ReadFrom(buf)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return errors.New("no reply")
		case err != nil:
			return fmt.Errorf("receive: %w", err)
		case isReply(buf[:n], to.Is6(), seq, payload):
			return nil
		}
	}
}

// isReply reports whether b is the echo reply to the request with this sequence
// number and payload length.
func isReply(b []byte, v6 bool, seq, payload int) bool {
	protocol, want := unix.IPPROTO_ICMP, icmp.Type(ipv4.ICMPTypeEchoReply)
	if v6 {
		protocol, want = unix.IPPROTO_ICMPV6, ipv6.ICMPTypeEchoReply
	}
	m, err := icmp.ParseMessage(protocol, b)
	if err != nil || m.Type != want {
		return false
	}
	echo, ok := m.Body.(*icmp.Echo)
	return ok && echo.ID == echoID && echo.Seq == seq && len(echo.Data) == max(payload, 0)
}
