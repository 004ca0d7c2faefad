package agent

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// ICMP types, RFC 792 and RFC 4443.
const (
	echoRequest4 = 8
	echoReply4   = 0
	echoRequest6 = 128
	echoReply6   = 129
	icmpHeader   = 8
)

const echoID = 0x7774

// openEcho opens a raw ICMP socket that forbids fragmentation.
func openEcho(to netip.Addr) (int, error) {
	family, proto := unix.AF_INET, unix.IPPROTO_ICMP
	level, option, do := unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_DO
	if to.Is6() {
		family, proto = unix.AF_INET6, unix.IPPROTO_ICMPV6
		level, option, do = unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_DO
	}
	fd, err := unix.Socket(family, unix.SOCK_RAW|unix.SOCK_CLOEXEC, proto)
	if err != nil {
		return -1, err
	}
	if err := unix.SetsockoptInt(fd, level, option, do); err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}

func closeEcho(fd int) { unix.Close(fd) }

// pingOnce sends one request and waits for its reply.
func pingOnce(fd int, to netip.Addr, seq uint16, payload int, wait time.Duration) error {
	var dst unix.Sockaddr
	if to.Is6() {
		dst = &unix.SockaddrInet6{Addr: to.As16()}
	} else {
		dst = &unix.SockaddrInet4{Addr: to.As4()}
	}
	if err := unix.Sendto(fd, echoMessage(to.Is6(), seq, payload), 0, dst); err != nil {
		time.Sleep(wait / 10)
		return fmt.Errorf("send: %w", err)
	}
	deadline := time.Now().Add(wait)
	buf := make([]byte, 128<<10)
	for {
		left := time.Until(deadline)
		if left <= 0 {
			return errors.New("no reply")
		}
		tv := unix.NsecToTimeval(int64(left))
		if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv); err != nil {
			return err
		}
		n, _, err := unix.Recvfrom(fd, buf, 0)
		switch {
		case errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return fmt.Errorf("receive: %w", err)
		}
		if isReply(buf[:n], to.Is6(), seq, payload) {
			return nil
		}
	}
}

// echoMessage builds a request. The kernel fills in ICMPv6's checksum, which
// covers a pseudo-header.
func echoMessage(v6 bool, seq uint16, payload int) []byte {
	m := make([]byte, icmpHeader+max(payload, 0))
	m[0] = echoRequest4
	if v6 {
		m[0] = echoRequest6
	}
	binary.BigEndian.PutUint16(m[4:], echoID)
	binary.BigEndian.PutUint16(m[6:], seq)
	for i := icmpHeader; i < len(m); i++ {
		m[i] = byte(i)
	}
	if !v6 {
		binary.BigEndian.PutUint16(m[2:], checksum(m))
	}
	return m
}

// isReply recognises the answer to a request in what a raw socket receives:
// IPv4 sockets get the IP header too.
func isReply(b []byte, v6 bool, seq uint16, payload int) bool {
	kind := byte(echoReply6)
	if !v6 {
		kind = echoReply4
		if len(b) < 20 {
			return false
		}
		header := int(b[0]&0x0f) * 4
		if len(b) < header {
			return false
		}
		b = b[header:]
	}
	return len(b) == icmpHeader+max(payload, 0) && b[0] == kind &&
		binary.BigEndian.Uint16(b[4:]) == echoID && binary.BigEndian.Uint16(b[6:]) == seq
}

// checksum is the Internet checksum of RFC 1071.
func checksum(b []byte) uint16 {
	var sum uint32
	for ; len(b) >= 2; b = b[2:] {
		sum += uint32(binary.BigEndian.Uint16(b))
	}
	if len(b) == 1 {
		sum += uint32(b[0]) << 8
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}
