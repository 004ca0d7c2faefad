package e2e

import (
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"windtunnel/vrouter/api"
	"windtunnel/vrouter/bgp/bgptest"
	"windtunnel/vrouter/model"
)

// gateway is a router that announces what the test tells it. It receives the packets of MPLS over UDP that the node
// sends to it.
type gateway struct {
	*node
	t    *testing.T
	peer *bgptest.Peer
	// ended is closed when the agent has ended the session.
	ended chan struct{}

	mu   sync.Mutex
	seen []sighting
}

// sighting is a packet that a gateway received.
type sighting struct {
	at    time.Time
	label uint32
	id    uint64
}

// scaleBed returns a bed as gatewayBed does. The test runs only on a quiet machine.
func scaleBed(t *testing.T, gateways int) (b *bed, x *workload, all []*gateway) {
	t.Helper()
	if os.Getenv("WINDTUNNEL_TIMING_TESTS") == "" {
		t.Skip("times depend on the machine; set WINDTUNNEL_TIMING_TESTS=1 on a quiet one")
	}
	return gatewayBed(t, gateways, map[string]int{"routes": 65536, "prefixes": 65536, "bridge": 65536}, func(b *bed) {
		b.state.Nodes[0].BGP.Families = []model.BGPFamily{model.VPNv4}
	})
}

// gatewayBed returns a bed with one agent and gateways, which have sessions with it, and a workload of network red, which
// imports target 1001. sizes are limits of the node, and change edits the state.
func gatewayBed(t *testing.T, gateways int, sizes map[string]int, change func(*bed)) (b *bed, x *workload, all []*gateway) {
	t.Helper()
	b = bgpBed(t, 1+gateways, gateways)
	b.configureBGP(model.MPLSoUDP)
	b.nodes[0].config["limits"] = limits(sizes)
	x = b.workload("x", "red", 0, "10.1.0.10", "fd00:1::10")
	change(b)
	b.up()
	for _, n := range b.nodes[1:] {
		g := &gateway{node: n, t: t}
		var sink net.PacketConn
		b.must(in(n.ns, func() (err error) {
			sink, err = net.ListenPacket("udp", netip.AddrPortFrom(n.v4, 6635).String())
			return err
		}))
		t.Cleanup(func() { sink.Close() })
		b.must(sink.(*net.UDPConn).SetReadBuffer(8 << 20))
		go g.receive(sink)
		g.open()
		all = append(all, g)
	}
	return b, x, all
}

// open waits until the session with the agent is established.
func (g *gateway) open() {
	g.t.Helper()
	soon(g.t, "the session with "+g.name, func() error {
		return in(g.ns, func() error {
			c, err := net.DialTimeout("tcp", netip.AddrPortFrom(g.bed.nodes[0].v4, model.DefaultBGPPort).String(), 5*time.Second)
			if err != nil {
				return err
			}
			peer, err := bgptest.Open(c, g.v4)
			if err != nil {
				c.Close()
				return err
			}
			g.t.Cleanup(func() { c.Close() })
			ended := make(chan struct{})
			g.peer, g.ended = peer, ended
			go func() {
				io.Copy(io.Discard, c)
				c.Close()
				close(ended)
			}()
			return nil
		})
	})
}

// receive notes the packets with an id: label, IPv4 header, UDP header, id.
func (g *gateway) receive(sink net.PacketConn) {
	const at = 4 + 20 + 8
	for packet := make([]byte, 2048); ; {
		n, _, err := sink.ReadFrom(packet)
		if err != nil {
			return
		}
		if n >= at+8 {
			g.mu.Lock()
			g.seen = append(g.seen, sighting{time.Now(), binary.BigEndian.Uint32(packet) >> 12, binary.BigEndian.Uint64(packet[at:])})
			g.mu.Unlock()
		}
	}
}

// sightings returns the packets that the gateway has received since the first `from` ones.
func (g *gateway) sightings(from int) []sighting {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.seen[from:])
}

// send sends UPDATE messages.
func (g *gateway) send(updates ...[]byte) {
	g.t.Helper()
	_, err := g.peer.Write(slices.Concat(updates...))
	g.bed.must(err)
}

// reach returns UPDATE messages that announce prefixes with the gateway as next hop, at most 100 in a message.
func (g *gateway) reach(target, label uint32, prefixes ...netip.Prefix) (updates []byte) {
	for some := range slices.Chunk(prefixes, 100) {
		updates = append(updates, bgptest.Update(bgptest.Reach(g.v4, label, some...), bgptest.Origin, bgptest.ASPath, bgptest.Preference, bgptest.Target(target))...)
	}
	return updates
}

// networksFrom returns n consecutive prefixes with a length, from an address on.
func networksFrom(from string, bits, n int) (all []netip.Prefix) {
	first := mustAddr(from).As4()
	for i := range n {
		var a [4]byte
		binary.BigEndian.PutUint32(a[:], binary.BigEndian.Uint32(first[:])+uint32(i)<<(32-bits))
		all = append(all, netip.PrefixFrom(netip.AddrFrom4(a), bits))
	}
	return all
}

// probe sends a packet each millisecond to an address until a gateway receives one with a label. It returns the time
// from begin to the reception of this packet.
func (g *gateway) probe(x *workload, to netip.Addr, label uint32, begin time.Time) time.Duration {
	g.t.Helper()
	c, err := x.dial("udp", netip.AddrPortFrom(to, 7000).String())
	g.bed.must(err)
	defer c.Close()
	id, from := rand.Uint64(), len(g.sightings(0))
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for limit := begin.Add(5 * time.Minute); time.Now().Before(limit); <-tick.C {
		c.Write(binary.BigEndian.AppendUint64(nil, id)) // may fail: the node tells that there is no route
		for _, s := range g.sightings(from) {
			if s.id == id && s.label == label {
				return s.at.Sub(begin)
			}
		}
	}
	g.t.Fatalf("after 5 minutes, packets to %s do not arrive at %s with label %d", to, g.name, label)
	return 0
}

// peak returns the largest resident size of the node's agent so far, in bytes.
func (n *node) peak() (bytes int) {
	n.bed.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", n.agent.Process.Pid))
	n.bed.must(err)
	for line := range strings.Lines(string(status)) {
		fmt.Sscanf(line, "VmHWM: %d kB", &bytes)
	}
	return bytes << 10
}

// 500,000 VPN routes of a reflector, of which a network of the node imports 10,000, are received, and used if they are
// imported, within 30 s and 1 GB.
func TestBGPTakesManyRoutes(t *testing.T) {
	const others, ours = 490_000, 10_000
	b, x, gateways := scaleBed(t, 1)
	g, a := gateways[0], b.nodes[0]
	prefixes := networksFrom("11.0.0.0", 24, ours)
	updates := [][]byte{g.reach(9, 300, networksFrom("12.0.0.0", 32, others)...), g.reach(1001, 301, prefixes...)}
	begin := time.Now()
	g.send(updates...)
	used := g.probe(x, prefixes[ours-1].Addr().Next(), 301, begin)
	soon(t, "the node has all routes", func() error {
		n, err := ask(a, (*api.Client).BGPNeighbors)
		if err == nil && n[0].Received != others+ours {
			err = fmt.Errorf("the node has %d routes, want %d", n[0].Received, others+ours)
		}
		return err
	})
	received, peak := time.Since(begin), a.peak()
	t.Logf("%d routes: received after %.1f s, the last imported one used after %.1f s, %d MB resident at most", others+ours, received.Seconds(), used.Seconds(), peak>>20)
	if limit := 30 * time.Second; received > limit || used > limit || peak > 1<<30 {
		t.Errorf("the node takes %s to receive and %s to use the routes, and %d MB; at most %s and 1 GB are allowed", received, used, peak>>20, limit)
	}
}

// With 10,000 routes, the data path follows an update and a withdrawal within 200 ms (p99).
func TestBGPConvergesWithManyRoutes(t *testing.T) {
	b, x, gateways := scaleBed(t, 1)
	g := gateways[0]
	prefixes := networksFrom("11.0.0.0", 24, 10_000)
	g.send(g.reach(1001, 300, prefixes...))
	g.probe(x, prefixes[len(prefixes)-1].Addr().Next(), 300, time.Now())
	random := rand.New(rand.NewPCG(38, 1))
	times := map[string][]time.Duration{}
	for range 100 {
		p := prefixes[random.IntN(len(prefixes))]
		host := netip.PrefixFrom(p.Addr().Next(), 32)
		for _, step := range []struct {
			what  string
			send  []byte
			label uint32
		}{
			{"update", g.reach(1001, 301, p), 301},
			{"new route", g.reach(1001, 302, host), 302},
			{"withdrawal", bgptest.Update(bgptest.Unreach(host)), 301},
			{"update", g.reach(1001, 300, p), 300},
		} {
			begin := time.Now()
			g.send(step.send)
			times[step.what] = append(times[step.what], g.probe(x, host.Addr(), step.label, begin))
		}
	}
	for what, all := range times {
		slices.Sort(all)
		median, p99 := all[len(all)/2], all[len(all)*99/100]
		t.Logf("%s: median %s, p99 %s, of %d", what, median, p99, len(all))
		if p99 > 200*time.Millisecond {
			t.Errorf("the data path follows a %s within %s (p99), want 200 ms\n%s", what, p99, b.nodes[0].log())
		}
	}
}

// traffic sends packets at a constant rate over flows with different source ports until the returned function is
// called, which returns the number of packets. The ids are consecutive from 0.
func (x *workload) traffic(to netip.Addr, flows, perSecond int) (end func() uint64) {
	x.bed.t.Helper()
	var conns []net.Conn
	for range flows {
		c, err := x.dial("udp", netip.AddrPortFrom(to, 7000).String())
		x.bed.must(err)
		conns = append(conns, c)
	}
	stop, sent := make(chan struct{}), make(chan uint64, 1)
	go func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		begin, id := time.Now(), uint64(0)
		for {
			select {
			case <-stop:
				sent <- id
				return
			case <-tick.C:
			}
			for due := uint64(time.Since(begin).Seconds() * float64(perSecond)); id < due; id++ {
				conns[id%uint64(flows)].Write(binary.BigEndian.AppendUint64(nil, id))
			}
		}
	}()
	return func() uint64 {
		close(stop)
		n := <-sent
		for _, c := range conns {
			c.Close()
		}
		return n
	}
}

// During 100,000 updates in a minute, no packet of another route is lost, and the last update is used within 10 s.
func TestBGPUpdatesDoNotDisturbTraffic(t *testing.T) {
	_, x, gateways := scaleBed(t, 1)
	g, a := gateways[0], gateways[0].bed.nodes[0]
	prefixes := networksFrom("11.0.0.0", 24, 10_000)
	stable := netip.MustParsePrefix("13.0.0.0/24")
	g.send(g.reach(1001, 300, append(prefixes, stable)...))
	g.probe(x, stable.Addr().Next(), 300, time.Now())
	const updates, during = 100_000, time.Minute
	from := len(g.sightings(0))
	end := x.traffic(stable.Addr().Next(), 16, 1000)
	begin := time.Now()
	for i := range updates {
		g.send(g.reach(1001, uint32(400+i/len(prefixes)), prefixes[i%len(prefixes)]))
		if i%100 == 99 {
			time.Sleep(time.Until(begin.Add(during * time.Duration(i) / updates)))
		}
	}
	took := time.Since(begin)
	last := g.probe(x, prefixes[len(prefixes)-1].Addr().Next(), 400+updates/10_000-1, time.Now())
	sent := end()
	soon(t, "all packets arrive", func() error {
		if got := g.distinct(from, sent); got != sent {
			return fmt.Errorf("%d of %d packets have arrived", got, sent)
		}
		return nil
	})
	t.Logf("%d updates in %s; the last one is used after %s; %d packets sent, none lost; %d MB resident at most", updates, took, last, sent, a.peak()>>20)
	if last > 10*time.Second || took > 2*during {
		t.Errorf("the node takes %s for %d updates, and uses the last one after %s; want at most %s and 10 s", took, updates, last, 2*during)
	}
}

// distinct returns the number of different packets with ids below n that the gateway has received since the first
// `from` ones.
func (g *gateway) distinct(from int, n uint64) uint64 {
	ids := map[uint64]bool{}
	for _, s := range g.sightings(from) {
		if s.id < n {
			ids[s.id] = true
		}
	}
	return uint64(len(ids))
}

// Two gateways share the flows. One fails: its session ends, without graceful restart. After at most 200 ms no packet
// goes to it, and no packet is lost on the way to the other.
func TestAFailedGatewayLosesOnlyPacketsInFlight(t *testing.T) {
	_, x, gateways := scaleBed(t, 2)
	prefix := netip.MustParsePrefix("13.0.0.0/24")
	for _, g := range gateways {
		g.send(g.reach(1001, 300, append(networksFrom("11.0.0.0", 24, 10_000), prefix)...))
	}
	from := [2]int{}
	soon(t, "both gateways get flows", func() error {
		end := x.traffic(prefix.Addr().Next(), 64, 1000)
		time.Sleep(200 * time.Millisecond) // of traffic
		end()
		for i, g := range gateways {
			n := len(g.sightings(from[i]))
			from[i] += n
			if n < 40 {
				return fmt.Errorf("gateway %s has received %d packets", g.name, n)
			}
		}
		return nil
	})
	end := x.traffic(prefix.Addr().Next(), 64, 2000)
	time.Sleep(2 * time.Second) // of traffic
	failed := time.Now()
	gateways[0].bed.must(gateways[0].peer.Conn.(*net.TCPConn).SetLinger(0)) // RST, as when the router's host has lost the session
	gateways[0].peer.Close()
	time.Sleep(3 * time.Second) // of traffic
	sent := end()
	lost, last := 0, time.Duration(0)
	for _, s := range gateways[0].sightings(from[0]) {
		if after := s.at.Sub(failed); after > 0 {
			lost, last = lost+1, max(last, after)
		}
	}
	soon(t, "each packet arrives at one of the gateways", func() error {
		if got := gateways[0].distinct(from[0], sent) + gateways[1].distinct(from[1], sent); got != sent {
			return fmt.Errorf("%d of %d packets have arrived", got, sent)
		}
		return nil
	})
	t.Logf("%d packets at 2000 per second: %d went to the failed gateway, the last one %s after its failure; no other packet is lost", sent, lost, last)
	if last > 200*time.Millisecond {
		t.Errorf("packets go to the failed gateway for %s, want at most 200 ms", last)
	}
}
