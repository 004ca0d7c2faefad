package bgp

import (
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/vrouter/model"
)

// end is one of two nodes that speak with each other on loopback addresses.
type end struct {
	node model.Node
	*Speaker
	log     lockedBuffer
	changed chan struct{}
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

// pair returns two ends that are each other's neighbours, after changes. None has been started.
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

func freePort(t *testing.T, addresses ...netip.Addr) uint16 {
	t.Helper()
	l, err := net.Listen("tcp", addresses[0].String()+":0")
	must.Succeed(t, err)
	defer l.Close()
	return uint16(l.Addr().(*net.TCPAddr).Port)
}

func (e *end) start(t *testing.T, stale, announce []Path) {
	t.Helper()
	s, err := Start(e.node, slog.New(slog.NewTextHandler(&e.log, nil)), stale, announce, func() {
		select {
		case e.changed <- struct{}{}:
		default:
		}
	})
	must.Succeed(t, err)
	e.Speaker = s
	t.Cleanup(func() { s.Close(false) })
}

// await waits until a condition holds after a change of an end.
func (e *end) await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	limit := time.After(60 * time.Second)
	for !holds() {
		select {
		case <-e.changed:
		case <-time.After(100 * time.Millisecond): // the log changes too
		case <-limit:
			neighbors, _ := e.Neighbors()
			t.Fatalf("not in 60 s: %s; neighbours %+v; log:\n%s", what, neighbors, e.log.String())
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

// red are paths of a node to hosts of network red.
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
	a, b := pair(t, change)
	a.start(t, nil, a.red("10.1.0.10", "fd00::10"))
	b.start(t, nil, b.red("10.1.0.20"))
	b.await(t, "b has 4 paths of a", func() bool { return len(b.Received()) == 4 })
	a.await(t, "a has 2 paths of b", func() bool { return len(a.Received()) == 2 })
	want := a.red("10.1.0.10", "fd00::10")
	for i, p := range b.Received() {
		if p.External != (b.node.BGP.ASN != a.node.BGP.ASN) || p.ASPath != toInt(p.External) {
			t.Errorf("path %d is external: %v, and its AS path has %d", i, p.External, p.ASPath)
		}
		p.Neighbor = netip.Addr{}
		if !p.equal(&want[[]int{1, 3, 0, 2}[i]]) {
			t.Errorf("path %d is received as %+v", i, p)
		}
	}
	all, err := b.Neighbors()
	if err != nil || len(all) != 1 || all[0].State != "established" || all[0].Received != 4 || all[0].Sent != 2 || all[0].ASN != 64512 || all[0].Since.IsZero() {
		t.Errorf("the neighbours of b are %+v, %v", all, err)
	}
	must.Succeed(t, a.Announce(a.red("10.1.0.10")))
	b.await(t, "b has 2 paths of a", func() bool { return len(b.Received()) == 2 })
	a.Close(false)
	b.await(t, "b has no paths of a", func() bool { return len(b.Received()) == 0 })
}

// When the agent of a node starts again, neither side loses the paths of the other.
func TestARestartLosesNoPaths(t *testing.T) {
	a, b := pair(t, nil)
	a.start(t, nil, a.red("10.1.0.10", "10.1.0.11"))
	b.start(t, nil, b.red("10.1.0.20", "10.1.0.21"))
	b.await(t, "b has 4 paths of a", func() bool { return len(b.Received()) == 4 })
	a.await(t, "a has 4 paths of b", func() bool { return len(a.Received()) == 4 })
	kept := a.Received()
	a.Close(true)
	b.await(t, "the session ends", func() bool { return b.state() != "established" })
	if n := len(b.Received()); n != 4 {
		t.Errorf("b has %d paths of a while its agent starts", n)
	}
	must.Succeed(t, b.Announce(b.red("10.1.0.20"))) // a must notice that the other path is gone
	a.start(t, kept, a.red("10.1.0.10"))
	if n := len(a.Received()); n != 4 {
		t.Errorf("a begins with %d paths of b, want the 4 of before", n)
	}
	a.await(t, "a has the 2 paths that b still announces", func() bool {
		paths := a.Received()
		return len(paths) == 2 && !paths[0].Stale && !paths[1].Stale
	})
	b.await(t, "b has the 2 paths that a still announces", func() bool { return len(b.Received()) == 2 })
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
		passive := map[string]*model.BGP{"a": b, "b": a}[connects]
		passive.Neighbors[0].Port = 1 // a port at which nobody listens: it only accepts connections
	})
	a.start(t, nil, nil)
	b.start(t, nil, b.red("10.1.0.20"))
	a.await(t, "a says why", func() bool {
		all, _ := a.Neighbors()
		return len(all) == 1 && strings.Contains(all[0].Reason, "another AS number")
	})
	if !strings.Contains(a.log.String(), "no BGP session") || len(a.Received()) > 0 || a.state() == "established" {
		t.Errorf("a is %s, has the paths %+v, and says\n%s", a.state(), a.Received(), a.log.String())
	}
}

// A connection from an address that is not a neighbour is refused, which the log says once.
func TestOnlyNeighborsMayConnect(t *testing.T) {
	a, _ := pair(t, nil)
	a.start(t, nil, a.red("10.1.0.10"))
	const said = "the address is not a neighbour"
	for range 3 {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 38, 3)}, Timeout: 10 * time.Second}
		c, err := d.Dial("tcp", fmt.Sprintf("127.0.38.1:%d", a.node.BGP.Port))
		must.Succeed(t, err)
		c.SetDeadline(time.Now().Add(10 * time.Second))
		if n, err := c.Read(make([]byte, 100)); err == nil {
			t.Errorf("the speaker sends %d bytes to an address that is not a neighbour", n)
		}
		c.Close()
	}
	if n := strings.Count(a.log.String(), said); n != 1 || !strings.Contains(a.log.String(), "address=127.0.38.3") {
		t.Errorf("the log says %d times that an address is refused:\n%s", n, a.log.String())
	}
}

func TestAPortInUseIsNamed(t *testing.T) {
	a, _ := pair(t, nil)
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.38.1:%d", a.node.BGP.Port))
	must.Succeed(t, err)
	defer l.Close()
	_, err = Start(a.node, slog.New(slog.DiscardHandler), nil, nil, func() {})
	if want := fmt.Sprintf("listen for BGP on port %d of 127.0.38.1: ", a.node.BGP.Port); err == nil || !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), "set another bgp port") {
		t.Errorf("the error is %v", err)
	}
}
