package agent

import (
	"context"
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

// openEcho opens a raw ICMP socket that forbids fragmentation.
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
	return config.ListenPacket(context.Background(), network, "")
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
