package traffic

import (
	"encoding/binary"
	"net/netip"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
)

// Both ends mark every packet of a run, handshakes and acknowledgements too.
func TestBothEndsSendPacketsWithTheDSCP(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("reading packets needs root")
	}
	const ef = 46
	for _, c := range []struct {
		name string
		host string
		args []string
	}{
		{"stream", "127.0.0.1", []string{"-kind", "tcp_stream", "-rate", "50M", "-buffer", "10k", "-direction", "both"}},
		{"stream over IPv6", "::1", []string{"-kind", "tcp_stream", "-rate", "50M", "-buffer", "10k"}},
		{"datagrams", "127.0.0.1", []string{"-kind", "udp_stream", "-rate", "20M", "-buffer", "1000"}}, // the server echoes the greetings
		{"datagrams over IPv6", "::1", []string{"-kind", "udp_stream", "-rate", "20M", "-buffer", "1000", "-direction", "reverse"}},
		{"requests beside a load", "127.0.0.1", []string{"-kind", "tcp_rr", "-pace", "500", "-load", "1"}},
		{"datagram requests", "::1", []string{"-kind", "udp_rr", "-pace", "500"}},
		{"connections", "127.0.0.1", []string{"-kind", "tcp_crr", "-pace", "500"}},
		{"connections over IPv6", "::1", []string{"-kind", "tcp_crr", "-pace", "500"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			seen := watchLoopback(t)
			result := run(t, c.host, append(c.args, "-dscp", "EF", "-duration", "100ms")...)
			first := netip.MustParseAddrPort(result.Peer).Port() + 1 // the control connection has no mark
			marked, from := 0, map[string]int{}
			for _, p := range seen() {
				end := p.end(first)
				if end == "" {
					continue
				}
				from[end]++
				if p.dscp == ef {
					marked++
				}
			}
			if from["client"] == 0 || from["server"] == 0 || marked != from["client"]+from["server"] {
				t.Errorf("%d packets of %v have the DSCP EF; want all, from both ends", marked, from)
			}
		})
	}
}

// packet is what a test reads of an IP packet.
type packet struct {
	dscp     byte
	from, to uint16 // ports
}

// end returns which end of a run sent the packet; "" if another program did.
func (p packet) end(first uint16) string {
	data := func(port uint16) bool { return port >= first && port < first+15 }
	switch {
	case data(p.to):
		return "client"
	case data(p.from):
		return "server"
	}
	return ""
}

// watchLoopback records the packets of the loopback device until seen is called.
func watchLoopback(t *testing.T) (seen func() []packet) {
	t.Helper()
	const all = unix.ETH_P_ALL>>8 | unix.ETH_P_ALL&0xff<<8
	fd := must.Get(unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, all))(t)
	must.Succeed(t, unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 64<<20))
	must.Succeed(t, setTimeouts(fd, callTimeout))
	stop, done := make(chan struct{}), make(chan struct{})
	var list []packet
	go func() {
		defer close(done)
		buf := make([]byte, 128)
		for {
			n, _, err := unix.Recvfrom(fd, buf, 0)
			if p, ok := parsePacket(buf[:max(n, 0)]); ok && err == nil {
				list = append(list, p)
			}
			if err != nil && isClosed(stop) { // the socket is empty
				return
			}
		}
	}()
	t.Cleanup(func() { unix.Close(fd) })
	return func() []packet {
		close(stop)
		select {
		case <-done:
		case <-time.After(10 * time.Second):
			t.Fatal("the packets do not end")
		}
		return list
	}
}

// parsePacket reads an IPv4 or IPv6 packet without options.
func parsePacket(p []byte) (packet, bool) {
	port := func(at int) uint16 { return binary.BigEndian.Uint16(p[at:]) }
	switch {
	case len(p) >= 28 && p[0]>>4 == 4:
		return packet{p[1] >> 2, port(20), port(22)}, true
	case len(p) >= 48 && p[0]>>4 == 6:
		return packet{byte(binary.BigEndian.Uint16(p) >> 6 & 0x3f), port(40), port(42)}, true
	}
	return packet{}, false
}

func TestTheClientRefusesAnUnknownDSCP(t *testing.T) {
	for _, text := range []string{"ef", "64", "-1", ""} {
		_, _, err := parseClient([]string{"-connect", "127.0.0.1:5001", "-dscp", text}, os.Stderr)
		must.Fail(t, err, "is not a DSCP; write a number from 0 to 63, or a name")
	}
}
