package bgp

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/osrg/gobgp/v4/pkg/apiutil"
	"github.com/osrg/gobgp/v4/pkg/packet/bgp"

	"windtunnel/internal/must"
	"windtunnel/vrouter/model"
)

// end is one of two BGP speakers on loopback addresses.
type end struct {
	node model.Node
	*Speaker
	log     lockedBuffer
	changed chan struct{}
	lost    atomic.Int32 // how often the paths of a session were lost
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// pair returns two ends that are neighbours of each other. change edits their configurations; nil changes
// nothing. The caller starts them.
func pair(t *testing.T, change func(a, b *model.BGP)) (a, b *end) {
	t.Helper()
	first, second := netip.MustParseAddr("127.0.38.1"), netip.MustParseAddr("127.0.38.2")
	port := freePort(t, first, second)
	of := func(self, other netip.Addr) *end {
		return &end{changed: make(chan struct{}, 1), node: model.Node{
			Name: self.String(), Underlay: []netip.Addr{self}, Encapsulations: model.DefaultEncapsulations,
			BGP: &model.BGP{ASN: 64512, RouterID: self, Port: port, Neighbors: []model.Neighbor{{Address: other, Port: port}}},
		}}
	}
	a, b = of(first, second), of(second, first)
	if change != nil {
		change(a.node.BGP, b.node.BGP)
	}
	return a, b
}

// accepts lets an end only accept connections: it connects to a port at which nobody listens. If both ends
// connect at the same time, GoBGP 4.8 can wait for the hold time, or end the session once.
func accepts(b *model.BGP) { b.Neighbors[0].Port = 1 }

var ports atomic.Uint32

// freePort returns a TCP port that is free at each address. It is below net.ipv4.ip_local_port_range: a client's closed
// connection holds its port in TIME_WAIT for a minute, and a listener cannot bind the port in that time.
func freePort(t *testing.T, addresses ...netip.Addr) uint16 {
	t.Helper()
	for range 1000 {
		port := uint16(20000 + ports.Add(1))
		if !slices.ContainsFunc(addresses, func(a netip.Addr) bool {
			l, err := net.Listen("tcp", netip.AddrPortFrom(a, port).String())
			if err == nil {
				l.Close()
			}
			return err != nil
		}) {
			return port
		}
	}
	t.Fatalf("1000 ports above 20000 are in use at %v", addresses)
	return 0
}

func (e *end) start(t *testing.T, stale, announce []Path) {
	t.Helper()
	s := must.Get(Start(e.node, slog.New(slog.NewTextHandler(&e.log, nil)), stale, announce, func(lost bool) {
		e.lost.Add(int32(toInt(lost)))
		select {
		case e.changed <- struct{}{}:
		default:
		}
	}))(t)
	e.Speaker = s
	t.Cleanup(func() { s.Close(false) })
}

// await waits until a condition of an end holds.
func (e *end) await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	limit := time.After(60 * time.Second)
	for !holds() {
		select {
		case <-e.changed:
		case <-time.After(100 * time.Millisecond): // a session that ends does not always call changed
		case <-limit:
			neighbors, _ := e.Neighbors()
			t.Fatalf("after 60 s it does not hold that %s; the neighbours are %+v, and the log is\n%s", what, neighbors, e.log.String())
		}
	}
}

func (e *end) state() string {
	all, err := e.Neighbors()
	if err != nil || len(all) != 1 {
		return fmt.Sprint(all, err)
	}
	return all[0].State
}

// red returns the paths that the node announces for a port with these addresses in network red.
func (e *end) red(hosts ...string) []Path {
	n := model.Network{Name: "red", ID: 1, VNI: 1001, Forwarding: model.L3, Export: []model.RouteTarget{target("64512:1")}}
	p := model.Port{Name: "x", Network: "red", Node: e.node.Name}
	for _, h := range hosts {
		p.IPs = append(p.IPs, netip.MustParseAddr(h))
	}
	return Export(e.node, []model.Network{n}, []model.Port{p}, nil)
}

// A neighbour receives the paths of a node, their changes and their withdrawal: an internal
// neighbour with TCP MD5, and an external one.
func TestNeighborsExchangePaths(t *testing.T) {
	for name, change := range map[string]func(a, b *model.BGP){
		"internal": func(a, b *model.BGP) { a.Neighbors[0].Password, b.Neighbors[0].Password = "tunnel", "tunnel" },
		"external": func(a, b *model.BGP) { b.ASN, b.Neighbors[0].ASN, a.Neighbors[0].ASN = 70000, 64512, 70000 },
	} {
		t.Run(name, func(t *testing.T) { exchange(t, change) })
	}
}

func exchange(t *testing.T, change func(a, b *model.BGP)) {
	a, b := pair(t, func(a, b *model.BGP) {
		change(a, b)
		accepts(b)
	})
	a.start(t, nil, a.red("10.1.0.10", "fd00::10"))
	b.start(t, nil, b.red("10.1.0.20"))
	b.await(t, "b has 4 paths of a", func() bool { return len(b.Received()) == 4 })
	a.await(t, "a has 2 paths of b", func() bool { return len(a.Received()) == 2 })
	want := a.red("10.1.0.10", "fd00::10")
	external := b.node.BGP.ASN != a.node.BGP.ASN
	for i, p := range b.Received() {
		if p.External != external || p.ASPath != toInt(external) {
			t.Errorf("path %d has External %v and an AS path of length %d, want %v and %d", i, p.External, p.ASPath, external, toInt(external))
		}
		p.Neighbor = netip.Addr{}
		if sent := &want[[]int{1, 3, 0, 2}[i]]; !p.equal(sent) { // received paths are sorted
			t.Errorf("b receives path %d as %+v, want %+v", i, p, *sent)
		}
	}
	all, err := b.Neighbors()
	if err != nil || len(all) != 1 || all[0].State != "established" || all[0].Received != 4 || all[0].Sent != 2 || all[0].ASN != 64512 || all[0].Since.IsZero() {
		t.Errorf("the neighbours of b are %+v, %v; want one, established, with 4 paths received and 2 sent", all, err)
	}
	must.Succeed(t, a.Announce(a.red("10.1.0.10")))
	b.await(t, "b has 2 paths of a", func() bool { return len(b.Received()) == 2 })
	if hop := a.node.Underlay[0]; !b.Reaches(hop) || b.lost.Load() > 0 {
		t.Errorf("b reaches the next hop %s: %v, and has lost sessions %d times; want true and 0", hop, b.Reaches(hop), b.lost.Load())
	}
	a.Close(false)
	b.await(t, "b has no paths of a", func() bool { return len(b.Received()) == 0 })
	if hop := a.node.Underlay[0]; b.Reaches(hop) || b.lost.Load() != 1 {
		t.Errorf("b reaches the next hop %s: %v, and has lost sessions %d times; want false and 1", hop, b.Reaches(hop), b.lost.Load())
	}
}

// A session with a neighbour that announces too many paths ends, and its paths with it. After a pause, the next session starts.
func TestANeighborWithTooManyPathsHasNoSession(t *testing.T) {
	was := limitPause
	limitPause = 2 * time.Second
	t.Cleanup(func() { limitPause = was }) // runs after the speakers have ended
	a, b := pair(t, func(_, b *model.BGP) {
		accepts(b)
		b.Neighbors[0].MaximumPrefix = 3
	})
	b.start(t, nil, nil)
	a.start(t, nil, a.red("10.1.0.10", "10.1.0.11", "10.1.0.12"))
	b.await(t, "b has 6 paths of a in two families", func() bool { return len(b.Received()) == 6 })
	must.Succeed(t, a.Announce(a.red("10.1.0.10", "10.1.0.11", "10.1.0.12", "10.1.0.13")))
	b.await(t, "the session of b ends", func() bool { return b.state() != "established" && len(b.Received()) == 0 })
	if all, err := b.Neighbors(); err != nil || len(all) != 1 || all[0].Reason != tooManyPaths {
		t.Errorf("the neighbours of b are %+v, %v; want one, with the reason %q", all, err, tooManyPaths)
	}
	must.Succeed(t, a.Announce(a.red("10.1.0.10")))
	b.await(t, "b has a session and 2 paths of a", func() bool { return b.state() == "established" && len(b.Received()) == 2 })
	if all, err := b.Neighbors(); err != nil || all[0].Reason != "" {
		t.Errorf("the neighbours of b are %+v, %v; want one without a reason", all, err)
	}
}

// A session after one that ended while many paths were announced has the paths of both ends. Without checkSender, GoBGP 4.8
// sends nothing in most such sessions.
func TestASessionHasPathsAfterOneThatEndedDuringUpdates(t *testing.T) {
	must.Long(t)
	was := limitPause
	limitPause = 2 * time.Second
	t.Cleanup(func() { limitPause = was }) // runs after the speakers have ended
	a, b := pair(t, func(_, b *model.BGP) {
		accepts(b)
		b.Neighbors[0].MaximumPrefix = 3
	})
	var many []string
	for i := range 500 {
		many = append(many, fmt.Sprintf("10.1.%d.%d", i/250, i%250))
	}
	b.start(t, nil, nil)
	a.start(t, nil, nil)
	for range 4 {
		must.Succeed(t, a.Announce(a.red("10.1.0.10", "10.1.0.11")))
		b.await(t, "b has 4 paths of a in two families", func() bool { return b.state() == "established" && len(b.Received()) == 4 })
		must.Succeed(t, a.Announce(a.red(many...)))
		b.await(t, "the session of b ends", func() bool { return b.state() != "established" && len(b.Received()) == 0 })
	}
}

// The check of a session that has ended does not end the next session, in which GoBGP may have sent nothing yet.
func TestTheCheckOfAnEndedSessionDoesNotEndTheNext(t *testing.T) {
	a, b := pair(t, func(_, b *model.BGP) { accepts(b) })
	b.start(t, nil, nil)
	a.start(t, nil, nil)
	neighbor := a.node.BGP.Neighbors[0].Address
	sender := func() *sender {
		a.sessions.Lock()
		defer a.sessions.Unlock()
		return a.senders[neighbor]
	}
	a.await(t, "a has sent all of its first session", func() bool {
		first := sender()
		a.sessions.Lock()
		defer a.sessions.Unlock()
		return first != nil && first.endOfRIB
	})
	ended := sender()
	ended.endOfRIB, ended.update = false, false // as if nothing had been sent in it
	a.noteUp(neighbor)
	a.checkSender(neighbor, ended)
	if text := a.log.String(); strings.Contains(text, "GoBGP sends nothing") {
		t.Errorf("the check of the first session ends the second:\n%s", text)
	}
	a.checkSender(neighbor, sender())
	if text := a.log.String(); !strings.Contains(text, "GoBGP sends nothing") {
		t.Errorf("the check of the second session does not end it, although nothing was sent in it:\n%s", text)
	}
}

// The list of announced paths has labels, also of EVPN paths, whose label field is larger.
func TestAnnouncedPathsHaveTheirLabels(t *testing.T) {
	a, _ := pair(t, nil)
	a.node.Encapsulations = []model.Encapsulation{model.MPLSoUDP, model.MPLSoGRE}
	a.start(t, nil, a.red("10.1.0.10"))
	all := a.Announced()
	if len(all) != 2 {
		t.Fatalf("the node announces %+v, want an EVPN and a VPNv4 path", all)
	}
	for _, v := range all {
		if want := model.FirstLabel + 2; v.Value != uint32(want) || v.State != Announced || v.TunnelNames() != "mpls-udp mpls-gre" {
			t.Errorf("the %s path is %s with label %d and the encapsulations %s, want label %d", v.Family, v.State, v.Value, v.TunnelNames(), want)
		}
	}
}

// When the agent of a node starts again, neither side loses the paths of the other.
func TestARestartLosesNoPaths(t *testing.T) {
	a, b := pair(t, func(_, b *model.BGP) { accepts(b) })
	a.start(t, nil, a.red("10.1.0.10", "10.1.0.11"))
	b.start(t, nil, b.red("10.1.0.20", "10.1.0.21"))
	b.await(t, "b has 4 paths of a", func() bool { return len(b.Received()) == 4 })
	a.await(t, "a has 4 paths of b", func() bool { return len(a.Received()) == 4 })
	kept := a.Received()
	a.Close(true)
	b.await(t, "the session ends", func() bool { return b.state() != "established" })
	if n := len(b.Received()); n != 4 || b.lost.Load() > 0 {
		t.Errorf("while speaker a restarts, speaker b has %d paths of it, want 4, and has dropped all its paths %d times, want 0", n, b.lost.Load())
	}
	must.Succeed(t, b.Announce(b.red("10.1.0.20"))) // a is not connected, and does not receive this withdrawal
	a.start(t, kept, a.red("10.1.0.10"))
	must.Equal(t, 4, len(a.Received()))
	a.await(t, "a has only the 2 paths that b still announces", func() bool {
		paths := a.Received()
		return len(paths) == 2 && !paths[0].Stale && !paths[1].Stale
	})
	b.await(t, "b has only the 2 paths that a still announces", func() bool { return len(b.Received()) == 2 })
}

// When a neighbour stays away, its paths are stale during its graceful restart, and then during its long-lived graceful
// restart. Paths with NO_LLGR are deleted when the graceful restart ends.
func TestALongLivedRestartMakesPathsStale(t *testing.T) {
	was := restartTime
	restartTime = 2 * time.Second
	t.Cleanup(func() { restartTime = was }) // runs after the speakers have ended
	a, b := pair(t, func(_, b *model.BGP) { accepts(b) })
	a.start(t, nil, a.red("10.1.0.10"))
	short := a.red("10.1.0.11")[0]
	w := must.Get(short.toWire())(t)
	w.Attrs = append(w.Attrs, bgp.NewPathAttributeCommunities([]uint32{uint32(bgp.COMMUNITY_NO_LLGR)}))
	must.Get(a.server.AddPath(apiutil.AddPathRequest{Paths: []*apiutil.Path{w}}))(t)
	b.start(t, nil, nil)
	b.await(t, "b has 3 paths of a", func() bool { return len(b.Received()) == 3 })
	all := func(is func(Path) bool) bool {
		paths, n := b.Received(), must.Get(b.Neighbors())(t)[0]
		return len(paths) == 2 && is(paths[0]) && is(paths[1]) && n.Stale == 2
	}
	a.Close(true)
	b.await(t, "all paths of a are stale", func() bool { return must.Get(b.Neighbors())(t)[0].Stale >= 2 })
	b.await(t, "the paths of a have LLGR_STALE", func() bool {
		return all(func(p Path) bool { return p.LongLivedStale && slices.Equal(p.Communities, []string{"llgr-stale"}) })
	})
	a.start(t, nil, a.red("10.1.0.10"))
	b.await(t, "the paths of a are fresh", func() bool {
		paths, n := b.Received(), must.Get(b.Neighbors())(t)[0]
		return len(paths) == 2 && !paths[0].LongLivedStale && !paths[1].LongLivedStale && n.Stale == 0
	})
}

// A node announces only its own paths: it does not know the labels of those of an external neighbour.
func TestPathsOfANeighborAreNotAnnouncedToOthers(t *testing.T) {
	a, b := pair(t, func(a, b *model.BGP) {
		b.ASN, b.Neighbors[0].ASN, a.Neighbors[0].ASN = 70000, 64512, 70000
		accepts(b)
	})
	third := netip.MustParseAddr("127.0.38.3")
	c := &end{changed: make(chan struct{}, 1), node: model.Node{Name: "c", Underlay: []netip.Addr{third}, Encapsulations: model.DefaultEncapsulations,
		BGP: &model.BGP{ASN: 70001, RouterID: third, Port: a.node.BGP.Port, Neighbors: []model.Neighbor{{Address: a.node.Underlay[0], ASN: 64512, Port: 1}}}}}
	a.node.BGP.Neighbors = append(a.node.BGP.Neighbors, model.Neighbor{Address: third, ASN: 70001, Port: a.node.BGP.Port})
	a.start(t, nil, a.red("10.1.0.10"))
	b.start(t, nil, b.red("10.1.0.20"))
	c.start(t, nil, nil)
	a.await(t, "a has 2 paths of b", func() bool { return len(a.Received()) == 2 })
	c.await(t, "c has 2 paths of a", func() bool { return len(c.Received()) == 2 })
	must.Succeed(t, b.Announce(b.red("10.1.0.20", "10.1.0.21")))
	a.await(t, "a has 4 paths of b", func() bool { return len(a.Received()) == 4 })
	must.Succeed(t, a.Announce(a.red("10.1.0.10", "10.1.0.11")))
	c.await(t, "c has 2 paths to 10.1.0.11", func() bool { return len(c.Received()) >= 4 })
	for _, p := range c.Received() {
		if p.ASPath != 1 {
			t.Errorf("c receives the path to %s with %d AS numbers, want only those of a with 1", p.Destination(), p.ASPath)
		}
	}
}

// A session that cannot be established has a reason, whichever end connects.
func TestAWrongASNIsTheReasonOfASession(t *testing.T) {
	for _, connects := range []string{"a", "b"} {
		t.Run(connects+" connects", func(t *testing.T) { wrongASNOf(t, connects) })
	}
}

func wrongASNOf(t *testing.T, connects string) {
	a, b := pair(t, func(a, b *model.BGP) {
		a.Neighbors[0].ASN = 64999
		accepts(map[string]*model.BGP{"a": b, "b": a}[connects])
	})
	a.start(t, nil, nil)
	b.start(t, nil, b.red("10.1.0.20"))
	a.await(t, "the neighbour of a has the reason", func() bool {
		all, _ := a.Neighbors()
		return len(all) == 1 && strings.Contains(all[0].Reason, "another AS number")
	})
	if !strings.Contains(a.log.String(), "no BGP session") {
		t.Errorf("the log of a does not say that there is no BGP session:\n%s", a.log.String())
	}
	if len(a.Received()) > 0 || a.state() == "established" {
		t.Errorf("the session of a is %s and has the paths %+v; want no session and no paths", a.state(), a.Received())
	}
}

// A neighbour that rejects the OPEN message of this node is named, whichever end connects.
func TestANeighborThatRejectsThisNodesOpenIsNamed(t *testing.T) {
	for _, connects := range []string{"a", "b"} {
		t.Run(connects+" connects", func(t *testing.T) {
			a, b := pair(t, func(a, b *model.BGP) {
				a.Neighbors[0].ASN = 64999
				accepts(map[string]*model.BGP{"a": b, "b": a}[connects])
			})
			a.start(t, nil, nil)
			b.start(t, nil, nil)
			b.awaitReason(t, "the neighbour rejects this node's OPEN message; it must have this node as a neighbour with AS number 64512")
		})
	}
}

// A neighbour that closes the session with a NOTIFICATION after its OPEN, as BIRD does, rejects this node's OPEN message.
func TestANotificationAfterOpenIsARejection(t *testing.T) {
	a, _ := pair(t, nil)
	l := must.Get(net.Listen("tcp", fmt.Sprintf("127.0.38.2:%d", a.node.BGP.Port)))(t)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			open, _ := bgp.NewBGPOpenMessage(64512, 90, netip.MustParseAddr("127.0.38.2"), nil)
			for _, m := range []*bgp.BGPMessage{open, bgp.NewBGPNotificationMessage(bgp.BGP_ERROR_OPEN_MESSAGE_ERROR, bgp.BGP_ERROR_SUB_BAD_PEER_AS, nil)} {
				if text, err := m.Serialize(); err == nil {
					c.Write(text)
				}
			}
			io.Copy(io.Discard, c)
			c.Close()
		}
	}()
	a.start(t, nil, nil)
	a.awaitReason(t, "the neighbour rejects this node's OPEN message")
}

// The last cause is the reason: an older one of this node does not hide that the neighbour rejects OPEN now. A neighbour that
// closes connections after a rejection does so because of it.
func TestTheLastCauseIsTheReason(t *testing.T) {
	e, _ := pair(t, nil)
	a := &Speaker{node: e.node, log: slog.New(slog.DiscardHandler), reasons: map[netip.Addr]reason{}, silent: map[netip.Addr]silence{}}
	neighbor := &Neighbor{Address: a.node.BGP.Neighbors[0].Address, State: "active"}
	a.setReason(neighbor.Address, wrongASN)
	a.openRejected(neighbor.Address)
	must.Equal(t, wrongASN, a.reasons[neighbor.Address].text)
	a.reasons[neighbor.Address] = reason{wrongASN, time.Now().Add(-time.Minute)}
	a.openRejected(neighbor.Address)
	a.noteSilence(neighbor.Address, closesConnections)
	got := a.reason(neighbor, time.Now().Add(9*time.Second))
	if want := fmt.Sprintf("its log has the cause; since then 127.0.38.2:%d closes each TCP connection of this node without a message, for 9s", a.node.BGP.Port); !strings.HasPrefix(got, "the neighbour rejects this node's OPEN message") || !strings.HasSuffix(got, want) {
		t.Errorf("the reason is %q, want one that ends with %q", got, want)
	}
}

// awaitReason waits until the neighbour's reason contains a text.
func (e *end) awaitReason(t *testing.T, text string) {
	t.Helper()
	e.await(t, "the neighbour has the reason "+text, func() bool {
		all, _ := e.Neighbors()
		return len(all) == 1 && strings.Contains(all[0].Reason, text)
	})
}

// The list of neighbours says why there is no TCP connection: no program listens there, the passwords differ, or the neighbour
// closes each connection.
func TestANeighborWithoutATCPConnectionHasAReason(t *testing.T) {
	t.Run("no program", func(t *testing.T) {
		a, _ := pair(t, nil)
		a.start(t, nil, nil)
		a.awaitReason(t, fmt.Sprintf("no TCP connection to 127.0.38.2:%d for ", a.node.BGP.Port))
		a.awaitReason(t, "no program accepts BGP connections there")
		if n := strings.Count(a.log.String(), "no TCP connection for BGP"); n != 1 {
			t.Errorf("the log has %d entries, want 1:\n%s", n, a.log.String())
		}
	})
	t.Run("password", func(t *testing.T) {
		a, b := pair(t, func(a, b *model.BGP) {
			a.Neighbors[0].Password = "tunnel"
			accepts(b)
		})
		b.start(t, nil, nil)
		a.start(t, nil, nil)
		a.awaitReason(t, "nothing answers there, or the passwords differ or only one side has one")
	})
	t.Run("closes", func(t *testing.T) {
		a, b := pair(t, func(_, b *model.BGP) { b.Neighbors[0].Address = netip.MustParseAddr("127.0.38.9") })
		b.start(t, nil, nil)
		a.start(t, nil, nil)
		a.awaitReason(t, "closes each TCP connection of this node without a message")
	})
}

// A speaker refuses connections from an address that is not a neighbour, and logs this once. The list of neighbours has it.
func TestOnlyNeighborsMayConnect(t *testing.T) {
	a, _ := pair(t, nil)
	a.start(t, nil, a.red("10.1.0.10"))
	const warning = "the address is not a neighbour"
	for range 3 {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 38, 3)}, Timeout: 10 * time.Second}
		c := must.Get(d.Dial("tcp", fmt.Sprintf("127.0.38.1:%d", a.node.BGP.Port)))(t)
		c.SetDeadline(time.Now().Add(10 * time.Second))
		if n, err := c.Read(make([]byte, 100)); err == nil {
			t.Errorf("the speaker sends %d bytes to an address that is not a neighbour", n)
		}
		c.Close()
	}
	all, err := a.Neighbors()
	if err != nil || len(all) != 2 || all[1].Address.String() != "127.0.38.3" || all[1].State != "refused" || !strings.Contains(all[1].Reason, "it is not a neighbour") {
		t.Errorf("the neighbours are %+v, %v; want the neighbour, and the refused address with a reason", all, err)
	}
	if n := strings.Count(a.log.String(), warning); n != 1 || !strings.Contains(a.log.String(), "address=127.0.38.3") {
		t.Errorf("the log has %d warnings of refused connections, want 1 for 127.0.38.3:\n%s", n, a.log.String())
	}
}

func TestAPortInUseIsNamed(t *testing.T) {
	a, _ := pair(t, nil)
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.38.1:%d", a.node.BGP.Port))
	must.Succeed(t, err)
	defer l.Close()
	_, err = Start(a.node, slog.New(slog.DiscardHandler), nil, nil, func(bool) {})
	if want := fmt.Sprintf("listen for BGP on port %d of 127.0.38.1: ", a.node.BGP.Port); err == nil || !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), "set another bgp port") {
		t.Errorf("the error of a port in use is %v, want the prefix %q and a hint to set another port", err, want)
	}
}
