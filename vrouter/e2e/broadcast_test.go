package e2e

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
)

const (
	broadcastPort = 7777
	broadcasts    = 3
)

// checkBroadcast: what the first sends to all of 10.5.0.0/24 reaches each of
// the others once, and does not come back to the first. That one's sockets would
// not tell: its own stack hands them a copy (ip_mc_output), and refuses what
// comes from outside with its own address. So its device is watched.
func checkBroadcast(t *testing.T, all []*workload) {
	t.Helper()
	sender, others := all[0], all[1:]
	watch := packetSocket(t, sender.ns, "eth0", unix.SOCK_DGRAM)
	listeners := make([]net.PacketConn, len(others))
	for i, w := range others {
		must.Succeed(t, in(w.ns, func() (err error) {
			listeners[i], err = net.ListenPacket("udp4", netip.AddrPortFrom(netip.IPv4Unspecified(), broadcastPort).String())
			return err
		}))
		defer listeners[i].Close()
	}
	c, err := sender.dial("udp4", netip.AddrPortFrom(netip.MustParseAddr("10.5.0.255"), broadcastPort).String())
	must.Succeed(t, err)
	defer c.Close()
	for range broadcasts {
		if _, err := c.Write([]byte("all")); err != nil {
			t.Fatal(err)
		}
	}
	got := make([]int, len(others))
	for i, l := range listeners {
		got[i] = receive(l, broadcasts, 20*time.Second)
	}
	time.Sleep(200 * time.Millisecond) // copies too many would come now
	for i, l := range listeners {
		if got[i] += receive(l, 100, 100*time.Millisecond); got[i] != broadcasts {
			t.Errorf("%s got %d broadcasts, want %d", others[i].port.Name, got[i], broadcasts)
		}
	}
	if in, out := countBroadcasts(t, watch); in != 0 || out != broadcasts {
		t.Errorf("%s sent %d broadcasts, want %d, and %d came back to it", sender.port.Name, out, broadcasts, in)
	}
}

// receive counts datagrams until there are n or none has come for so long. The
// time starts anew here: a deadline that has passed refuses even what waits in
// the socket.
func receive(l net.PacketConn, n int, patience time.Duration) int {
	l.SetReadDeadline(time.Now().Add(patience))
	buf := make([]byte, 64)
	for got := range n {
		if _, _, err := l.ReadFrom(buf); err != nil {
			return got
		}
	}
	return n
}

// countBroadcasts counts those that the device has received and sent.
func countBroadcasts(t *testing.T, watch int) (in, out int) {
	t.Helper()
	buf := make([]byte, 128)
	for {
		n, from, err := unix.Recvfrom(watch, buf, 0)
		if errors.Is(err, unix.EAGAIN) {
			return in, out
		}
		must.Succeed(t, err)
		udp := n >= 28 && buf[0] == 0x45 && buf[9] == unix.IPPROTO_UDP
		if !udp || binary.BigEndian.Uint16(buf[22:]) != broadcastPort {
			continue
		}
		if from.(*unix.SockaddrLinklayer).Pkttype == unix.PACKET_OUTGOING {
			out++
		} else {
			in++
		}
	}
}
