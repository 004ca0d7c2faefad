package udptun

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// open runs a tunnel on a side until the test ends.
func open(t *testing.T, s, other *side, batch int, more ...Route) *Tunnel {
	t.Helper()
	c := s.config(other, batch)
	c.Routes = append(c.Routes, more...)
	var tunnel *Tunnel
	must(t, s.Do(func() (err error) {
		tunnel, err = Open(c)
		return err
	}))
	ended := make(chan error, 1)
	go func() { ended <- tunnel.Run() }()
	t.Cleanup(func() {
		if err := errors.Join(tunnel.Close(), tunnel.Close(), <-ended); err != nil {
			t.Errorf("a tunnel that was closed: %v", err)
		}
		if _, err := s.Link(testDevice); err == nil {
			t.Errorf("%s is still in %s", testDevice, s.Name)
		}
	})
	s.raise(t)
	return tunnel
}

// joined are two sides with a tunnel between them.
func joined(t *testing.T, batch int) ([2]*side, [2]*Tunnel) {
	t.Helper()
	both := sides(t)
	return both, [2]*Tunnel{open(t, both[0], both[1], batch), open(t, both[1], both[0], batch)}
}

// inBoth runs a test in both forms of the tunnel.
func inBoth(t *testing.T, f func(t *testing.T, batch int)) {
	for _, batch := range []int{1, 16} {
		t.Run(fmt.Sprintf("batch %d", batch), func(t *testing.T) { f(t, batch) })
	}
}

// inner is the side's own address within the tunnel.
func (s *side) inner(version int) netip.Addr {
	if version == 6 {
		return s.v6.Addr().Next()
	}
	return s.v4.Addr().Next()
}

// udp opens a socket on an address of the side.
func (s *side) udp(t *testing.T, at netip.AddrPort) *net.UDPConn {
	t.Helper()
	var conn *net.UDPConn
	must(t, s.Do(func() (err error) {
		conn, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(at))
		return err
	}))
	t.Cleanup(func() { conn.Close() })
	must(t, conn.SetDeadline(time.Now().Add(testTimeout*time.Second)))
	return conn
}

func TestPacketsUpToTheMTUArriveAsTheyWere(t *testing.T) {
	inBoth(t, func(t *testing.T, batch int) {
		both, tunnels := joined(t, batch)
		const each = 20
		var packets, sum uint64
		for version, header := range map[int]int{4: ipv4Header + 8, 6: ipv6Header + 8} {
			near := both[0].udp(t, netip.AddrPortFrom(both[0].inner(version), 9000))
			far := both[1].udp(t, netip.AddrPortFrom(both[1].inner(version), 9000))
			for i := range each {
				sent := make([]byte, innerMTU-header-i*7)
				rand.Read(sent)
				if _, err := near.WriteToUDPAddrPort(sent, netip.AddrPortFrom(both[1].inner(version), 9000)); err != nil {
					t.Fatal(err)
				}
				got := make([]byte, maxPacket)
				n, from, err := far.ReadFromUDPAddrPort(got)
				if err != nil {
					t.Fatalf("IPv%d, %d bytes: %v", version, len(sent), err)
				}
				if !bytes.Equal(got[:n], sent) || from.Addr().Unmap() != both[0].inner(version) {
					t.Fatalf("IPv%d: %d bytes from %v arrived of %d", version, n, from, len(sent))
				}
				packets++
				sum += uint64(header + len(sent))
			}
		}
		// A packet is counted once the kernel has it, so its receiver may be first.
		eventually(t, "packets out", packets, func() uint64 { return tunnels[0].Counters().ToPeers.Packets })
		eventually(t, "packets in", packets, func() uint64 { return tunnels[1].Counters().FromPeers.Packets })
		out, in := tunnels[0].Counters().ToPeers, tunnels[1].Counters().FromPeers
		if out.Packets != packets || out.Bytes != sum || in.Packets != packets || in.Bytes != sum {
			t.Errorf("%d packets, %d bytes were sent; %+v went out, %+v came in", packets, sum, out, in)
		}
		if lost := in.Malformed + in.UnknownPeer + in.Transit + in.Failed + out.Malformed + out.Failed; lost != 0 {
			t.Errorf("%+v, %+v: want nothing dropped", out, in)
		}
	})
}

func TestBulkTCPArrivesWholeBothWays(t *testing.T) {
	inBoth(t, func(t *testing.T, batch int) {
		both, tunnels := joined(t, batch)
		sent := make([]byte, 4<<20)
		rand.Read(sent)
		for _, version := range []int{4, 6} {
			got := exchange(t, both, version, sent)
			if !bytes.Equal(got, sent) {
				t.Errorf("IPv%d: %d bytes came back of %d, or others", version, len(got), len(sent))
			}
		}
		least := uint64(2 * len(sent)) // the inner headers come on top
		for i, tunnel := range tunnels {
			if c := tunnel.Counters(); c.ToPeers.Bytes < least || c.FromPeers.Bytes < least {
				t.Errorf("tunnel %d: %+v, want %d bytes or more each way", i, c, least)
			}
		}
	})
}

// exchange sends over the tunnel to an echo and returns what came back.
func exchange(t *testing.T, both [2]*side, version int, sent []byte) []byte {
	t.Helper()
	at := netip.AddrPortFrom(both[1].inner(version), 9001).String()
	var listener net.Listener
	must(t, both[1].Do(func() (err error) {
		listener, err = net.Listen("tcp", at)
		return err
	}))
	defer listener.Close()
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return // the dialler says why
		}
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(testTimeout * time.Second))
		io.Copy(conn, conn)
	}()
	var conn net.Conn
	must(t, both[0].Do(func() (err error) {
		conn, err = net.DialTimeout("tcp", at, testTimeout*time.Second)
		return err
	}))
	defer conn.Close()
	must(t, conn.SetDeadline(time.Now().Add(testTimeout*time.Second)))
	go func() {
		conn.Write(sent)
		conn.(*net.TCPConn).CloseWrite()
	}()
	got, err := io.ReadAll(conn)
	must(t, err)
	return got
}

// eventually waits for a figure that another goroutine counts.
func eventually(t *testing.T, what string, want uint64, read func() uint64) {
	t.Helper()
	for deadline := time.Now().Add(testTimeout * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if read() == want {
			return
		}
	}
	t.Errorf("%s: %d, want %d", what, read(), want)
}

func TestWhatDoesNotBelongIsDroppedAndCounted(t *testing.T) {
	inBoth(t, func(t *testing.T, batch int) {
		both, tunnels := joined(t, batch)
		in := func() Direction { return tunnels[1].Counters().FromPeers }
		send := func(from *net.UDPConn, packet []byte) {
			t.Helper()
			if _, err := from.WriteToUDPAddrPort(packet, both[1].at); err != nil {
				t.Fatal(err)
			}
		}
		good := packet4(both[0].inner(4), both[1].inner(4), 100)
		peer := tunnels[0].socket // whose address the other side knows

		stranger := both[0].udp(t, netip.AddrPortFrom(both[0].at.Addr(), testPort+1))
		send(stranger, good)
		eventually(t, "from an unknown peer", 1, func() uint64 { return in().UnknownPeer })
		send(peer, good[:99])
		send(peer, []byte("no packet at all"))
		send(peer, nil)
		eventually(t, "malformed", 3, func() uint64 { return in().Malformed })
		send(peer, packet4(both[1].inner(4), both[0].inner(4), 100))
		eventually(t, "for a network behind a peer", 1, func() uint64 { return in().Transit })
		if got := in().Packets; got != 0 {
			t.Errorf("%d packets passed", got)
		}
		send(peer, good)
		eventually(t, "good", 1, func() uint64 { return in().Packets })

		before := tunnels[0].Counters().ToPeers.NoRoute
		lost := both[0].udp(t, netip.AddrPortFrom(both[0].inner(4), 0))
		if _, err := lost.WriteToUDPAddrPort([]byte("x"), netip.MustParseAddrPort("10.5.77.1:9")); err != nil {
			t.Fatal(err)
		}
		eventually(t, "without a route", before+1, func() uint64 { return tunnels[0].Counters().ToPeers.NoRoute })

		l, err := both[1].Link(testDevice)
		must(t, err)
		must(t, both[1].Links.LinkSetDown(l))
		send(peer, good)
		eventually(t, "while the device is down", 1, func() uint64 { return in().Failed })
	})
}

// Both sides believe that the network lies behind the other; the packet passes
// the wire once.
func TestContradictingRoutesDoNotSendAPacketInCircles(t *testing.T) {
	both := sides(t)
	nowhere := netip.MustParsePrefix("10.5.9.0/24")
	open(t, both[0], both[1], 1, Route{nowhere, both[1].at})
	far := open(t, both[1], both[0], 1, Route{nowhere, both[0].at})
	from := both[0].udp(t, netip.AddrPortFrom(both[0].inner(4), 0))
	if _, err := from.WriteToUDPAddrPort([]byte("x"), netip.MustParseAddrPort("10.5.9.1:9")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "refused by the other side", 1, func() uint64 { return far.Counters().FromPeers.Transit })
	if c := far.Counters(); c.ToPeers.Packets != 0 {
		t.Errorf("it was sent back: %+v", c)
	}
}

func TestADeletedDeviceEndsTheTunnelWithTheReason(t *testing.T) {
	inBoth(t, func(t *testing.T, batch int) {
		both := sides(t)
		var tunnel *Tunnel
		must(t, both[0].Do(func() (err error) {
			tunnel, err = Open(both[0].config(both[1], batch))
			return err
		}))
		ended := make(chan error, 1)
		go func() { ended <- tunnel.Run() }()
		both[0].raise(t)
		must(t, both[0].Remove(testDevice))
		select {
		case err := <-ended:
			if err == nil || !strings.Contains(err.Error(), "was it deleted?") {
				t.Errorf("%v, want that the device is gone", err)
			}
		case <-time.After(testTimeout * time.Second):
			t.Error("the tunnel runs on")
			tunnel.Close()
		}
	})
}

func TestWhatCannotBeOpenedIsToldWithItsRemedy(t *testing.T) {
	both := sides(t)
	good := both[0].config(both[1], 1)
	open := func(change func(*Config)) error {
		c := good
		change(&c)
		return both[0].Do(func() error {
			tunnel, err := Open(c)
			if err != nil {
				return err
			}
			return errors.Join(errors.New("it opened"), tunnel.Close())
		})
	}
	both[0].udp(t, netip.AddrPortFrom(good.Listen.Addr(), 1234))
	for say, change := range map[string]func(*Config){
		"choose another port":      func(c *Config) { c.Listen = netip.AddrPortFrom(c.Listen.Addr(), 1234) },
		"address of this node":     func(c *Config) { c.Listen = netip.MustParseAddrPort("192.0.2.77:1234") },
		"choose another":           func(c *Config) { c.Device = testFabric },
		"1 to 15 characters":       func(c *Config) { c.Device = "a-name-of-sixteen" },
		"want 1 to 256":            func(c *Config) { c.Batch = 0 },
		"this node":                func(c *Config) { c.Routes = []Route{{both[1].v4, c.Listen}} },
		"one is IPv4":              func(c *Config) { c.Listen = netip.MustParseAddrPort("[::1]:8285") },
		"there is no route":        func(c *Config) { c.Routes = nil },
		"invalid characters":       func(c *Config) { c.Device = "a/b" },
		"want ADDRESS:PORT, witho": func(c *Config) { c.Listen = netip.MustParseAddrPort("[::ffff:192.0.2.1]:8285") },
	} {
		if err := open(change); err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("%v, want %q", err, say)
		}
	}
	if err := open(func(*Config) {}); err == nil || err.Error() != "it opened" {
		t.Errorf("after all that: %v", err)
	}
}
