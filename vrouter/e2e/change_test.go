package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"windtunnel/internal/must"
	"windtunnel/internal/screen"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/direct"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/inspect"
	"windtunnel/vrouter/model"
)

// offer makes the encapsulations of all nodes in the state equal to these.
func (b *bed) offer(encaps ...model.Encapsulation) {
	for i := range b.state.Nodes {
		b.state.Nodes[i].Encapsulations = encaps
	}
}

// applyApart applies the state to one node after another, with a pause between. backwards: to
// the last node first.
func (b *bed) applyApart(pause time.Duration, backwards bool) {
	b.t.Helper()
	nodes := b.agents()
	if backwards {
		slices.Reverse(nodes)
	}
	for i, n := range nodes {
		if i > 0 {
			time.Sleep(pause)
		}
		n.set(b.state)
	}
}

// The tests of changes use a shorter handover time than the default of 5 s, which
// TestNodesContinueWithTheFormerEncapsulation in package fib checks. apart is the delay with which the
// second node gets a change.
const (
	hold   = 2 * time.Second
	accept = fib.AcceptHolds * hold
	apart  = hold / 5
)

var held = map[string]any{"handover": hold.String()}

// encapsulations is a list of encapsulations that nodes offer, and the ways that they then use.
type encapsulations struct {
	offered []model.Encapsulation
	ways    []string
}

// checkChanges changes the encapsulations of two nodes while datagrams pass in both directions
// between workloads x and y. The two nodes get each change at the same time, and one after the
// other. No datagram may be lost.
func checkChanges(t *testing.T, b *bed, x, y *workload, changes ...encapsulations) {
	t.Helper()
	must.Succeed(t, datagram(x, y, 4, 64)) // neighbours resolved
	datagrams := count(t, x, y)
	backwards := false
	for _, pause := range []time.Duration{0, apart} {
		for range 2 {
			for _, c := range changes {
				b.offer(c.offered...)
				b.applyApart(pause, backwards)
				b.awaitWays(c.ways...)
			}
			backwards = !backwards
		}
	}
	for i := range 3 * len(changes) { // in quick succession
		b.offer(changes[i%len(changes)].offered...)
		b.applyApart(0, i%2 == 0)
	}
	datagrams.lost(t)
}

// Two nodes change between direct and a tunnel while packets pass: none is lost, although the
// two nodes do not get the change at the same time.
func TestAChangeBetweenDirectAndATunnelLosesNothing(t *testing.T) {
	must.Long(t)
	tunnel := encapsulations{[]model.Encapsulation{model.VXLAN}, []string{"vxlan"}}
	for _, forwarding := range []model.Forwarding{model.L3, model.L2} {
		t.Run(string(forwarding), func(t *testing.T) {
			t.Parallel()
			b := newBed(t, options{config: held})
			x, y := directPair(b, forwarding, model.VXLAN)
			checkChanges(t, b, x, y, tunnel, encapsulations{[]model.Encapsulation{model.Direct, model.VXLAN}, directWays(forwarding)})
		})
	}
	t.Run("translated", func(t *testing.T) {
		t.Parallel()
		b := newBed(t, options{routed: true, config: held})
		x, y := routedPair(b, model.VXLAN)
		checkChanges(t, b, x, y, tunnel, encapsulations{[]model.Encapsulation{model.Direct, model.VXLAN}, []string{"translated", "vxlan"}})
	})
	t.Run("nothing in common", func(t *testing.T) {
		t.Parallel()
		b := newBed(t, options{config: held})
		x, y := directPair(b, model.L3)
		checkChanges(t, b, x, y, tunnel, encapsulations{[]model.Encapsulation{model.Direct}, []string{"direct"}})
	})
}

// A node gets the change from a tunnel to direct almost too late. By then the other node's first test of the
// link has failed, and the handover ends before its next test.
func TestALateChangeToDirectLosesNothing(t *testing.T) {
	must.Long(t)
	t.Parallel()
	b := newBed(t, options{config: held})
	x, y := directPair(b, model.L3, model.VXLAN)
	b.offer(model.VXLAN)
	b.apply()
	time.Sleep(accept + time.Second) // the nodes reply to no tests of direct any more
	datagrams := count(t, x, y)
	b.offer(model.Direct)
	b.applyApart(hold*9/10, false)
	b.awaitWays("direct")
	datagrams.lost(t)
}

// Two nodes change from one tunnel to another while packets pass. No encapsulation is common
// to the states before and after the change.
func TestASwapOfTunnelsLosesNothing(t *testing.T) {
	must.Long(t)
	t.Parallel()
	b := newBed(t, options{config: held})
	x, y := pair(b, model.L3, false, model.MPLSoUDP)
	checkChanges(t, b, x, y,
		encapsulations{[]model.Encapsulation{model.VXLAN}, []string{"vxlan"}},
		encapsulations{[]model.Encapsulation{model.MPLSoUDP}, []string{"mpls-udp"}})
}

// The locators are removed from two nodes, one after the other, while packets pass: none is lost, also
// when the nodes stop accepting translated packets, and when the locators come back.
func TestRemovedLocatorsLoseNothing(t *testing.T) {
	must.Long(t)
	t.Parallel()
	b := newBed(t, options{routed: true, config: held})
	x, y := routedPair(b, model.VXLAN)
	must.Succeed(t, datagram(x, y, 4, 64)) // neighbours resolved
	datagrams := count(t, x, y)
	for i := range b.state.Nodes {
		b.state.Nodes[i].Locator = netip.Prefix{}
	}
	b.applyApart(apart, false)
	time.Sleep(accept + 2*time.Second)
	b.awaitWays("vxlan")
	for i, n := range b.nodes {
		b.state.Nodes[i].Locator = n.locator()
	}
	b.applyApart(apart, true)
	b.awaitWays("translated", "vxlan")
	datagrams.lost(t)
}

// Two nodes get other locators while packets pass, one after the other: first one node, then both. None is
// lost. The nodes use the former locators until the handover ends, and then the new ones.
func TestChangedLocatorsLoseNothing(t *testing.T) {
	must.Long(t)
	t.Parallel()
	b := newBed(t, options{routed: true, config: held})
	x, y := routedPair(b, model.VXLAN)
	must.Succeed(t, datagram(x, y, 4, 64)) // neighbours resolved
	router, paths := b.handle(b.sw), func(n *node) string {
		return inspect.NexthopTable(table(n, (*api.Client).Nexthops)).Render(screen.Terminal{})
	}
	path := func(i int) string {
		return "translated " + b.state.Nodes[i].Locator.Addr().String() + " → " + b.state.Nodes[1-i].Locator.Addr().String() + " via"
	}
	datagrams := count(t, x, y)
	for round, changed := range [][]int{{1}, {0, 1}} {
		before := []string{path(0), path(1)}
		for _, i := range changed {
			l := netip.MustParsePrefix(fmt.Sprintf("fd78:0:%d:%d::/64", round, i+1))
			b.must(router.RouteAdd(&netlink.Route{Dst: ipNet(l), Gw: b.nodes[i].v6.AsSlice()}))
			b.state.Nodes[i].Locator = l
		}
		began := time.Now()
		b.applyApart(apart, round == 1)
		for i, n := range b.nodes {
			if text := paths(n); time.Since(began) < hold && !strings.Contains(text, before[i]) {
				t.Errorf("round %d: node %s does not use the former locators %q:\n%s", round, n.name, before[i], text)
			}
		}
		soon(t, "the nodes use the new locators", func() error {
			for i, n := range b.nodes {
				if text := paths(n); !strings.Contains(text, path(i)) {
					return fmt.Errorf("node %s has the nexthops\n%s\nwant %q", n.name, text, path(i))
				}
			}
			return nil
		})
		if took := time.Since(began); took < accept {
			t.Errorf("round %d: the nodes use the new locators after %v, before the handover ends", round, took)
		}
		time.Sleep(time.Second)
	}
	sent := b.nodes[0].sent(model.Translated)
	if err := transfer(x, y, 4, 1<<20); err != nil || b.nodes[0].sent(model.Translated)-sent < 1<<20 {
		t.Errorf("a transfer with the new locators (%v) sent %d bytes in translated packets, want at least 1 MiB", err, b.nodes[0].sent(model.Translated)-sent)
	}
	datagrams.lost(t)
}

// Nodes get a change from their shared store while packets pass: none is lost.
func TestAChangeInASharedStoreLosesNothing(t *testing.T) {
	t.Parallel()
	b := fleetBed(t, "10s")
	a := b.nodes[0]
	a.run("network", "create", "red", "--subnet", "10.1.0.0/24")
	x, y := b.connected("x", "red", 0), b.connected("y", "red", 1)
	soon(t, "the workloads reach each other", func() error { return datagram(x, y, 4, 64) })
	b.awaitWays("direct")
	datagrams := count(t, x, y)
	for range 5 {
		for _, c := range []encapsulations{
			{[]model.Encapsulation{model.VXLAN}, []string{"vxlan"}},
			{[]model.Encapsulation{model.MPLSoUDP}, []string{"mpls-udp"}},
			{[]model.Encapsulation{model.Direct, model.VXLAN}, []string{"direct"}},
		} {
			b.state = answer(a, (*api.Client).State)
			b.offer(c.offered...)
			a.set(b.state)
			b.awaitWays(c.ways...)
		}
	}
	datagrams.lost(t)
}

// A node that does not offer direct any more still receives direct packets for a time, also after
// its agent is restarted. Then it refuses them. The other node, which has not got the change,
// notices this and uses a tunnel.
func TestANodeAcceptsAnEncapsulationOfBeforeForATime(t *testing.T) {
	must.Long(t)
	t.Parallel()
	b := newBed(t, options{config: map[string]any{"repair_interval": "1h", "handover": hold.String()}})
	x, y := directPair(b, model.L3, model.VXLAN)
	a, other := b.nodes[0], b.nodes[1]
	label := direct.Label(291, a.v4).String()
	b.offer(model.VXLAN)
	a.set(b.state)
	a.awaitWays("b", "vxlan")
	accepts := func(when string) {
		t.Helper()
		if !strings.Contains(a.filters(), label) {
			t.Errorf("%s the filter of node a lacks label %s:\n%s", when, label, a.filters())
		}
		if err := datagram(y, x, 4, 64); err != nil {
			t.Errorf("a datagram to node a %s: %v", when, err)
		}
	}
	accepts("after the change")
	a.kill(syscall.SIGKILL)
	a.start()
	accepts("after a restart")
	if ways := other.ways("a"); !slices.Equal(ways, []string{"direct"}) {
		t.Errorf("node b reaches node a with the encapsulations %v, want direct alone", ways)
	}

	a.kill(syscall.SIGKILL)
	a.ageOffers(accept - time.Second)
	a.start()
	soon(t, "the label is removed from the filter", func() error {
		if strings.Contains(a.filters(), label) {
			return errTimeout
		}
		return nil
	})
	if err := datagram(y, x, 4, 64); err == nil && slices.Equal(other.ways("a"), []string{"direct"}) {
		t.Error("node a still accepts direct packets")
	}
	other.awaitWays("a", "vxlan")
	if err := datagram(y, x, 4, 64); err != nil {
		t.Errorf("a datagram by the tunnel: %v", err)
	}
}

// ageOffers makes the changes that the node's agent has saved older.
func (n *node) ageOffers(by time.Duration) {
	n.bed.t.Helper()
	path := filepath.Join(n.config["state_dir"].(string), "offers.json")
	text, err := os.ReadFile(path)
	n.bed.must(err)
	var offers fib.Offers
	var file map[string]json.RawMessage
	n.bed.must(errors.Join(json.Unmarshal(text, &offers), json.Unmarshal(text, &file)))
	aged := 0
	for _, p := range offers.Pairs {
		for i := range p.Former {
			p.Former[i].Until = p.Former[i].Until.Add(-by)
			aged++
		}
	}
	if aged == 0 {
		n.bed.t.Fatalf("%s has no former encapsulations:\n%s", path, text)
	}
	file["pairs"], err = json.Marshal(offers.Pairs)
	n.bed.must(err)
	writeJSON(n.bed.t, path, file)
}

// TCP streams run while the forwarding of a network changes from l2 or l2l3 to l3. The workloads' neighbour tables have
// each other's MAC addresses, to which the programs no longer forward. The agents announce the router's MAC address, so the
// streams must continue at once.
func TestTrafficContinuesWhenANetworkNoLongerBridges(t *testing.T) {
	for _, forwarding := range []model.Forwarding{model.L2, model.L2L3} {
		t.Run(string(forwarding), func(t *testing.T) {
			t.Parallel()
			b := newBed(t, options{})
			x, y := pair(b, forwarding, false, model.VXLAN)
			z := b.workload("z", "red", 0, "10.1.0.12", "fd00:1::12") // on the node of x
			b.apply()
			var ends []func() error
			for _, to := range []*workload{y, z} {
				for _, version := range []int{4, 6} {
					must.Succeed(t, datagram(x, to, version, 64)) // neighbours resolved
					ends = append(ends, openTransfer(x, to, version))
				}
			}
			b.state.Networks[0].Forwarding = model.L3
			b.apply()
			for _, to := range []*workload{y, z} {
				for _, version := range []int{4, 6} {
					began := time.Now()
					err := datagram(x, to, version, 64)
					if took := time.Since(began); err != nil || took >= patience*time.Second { // datagram sends again after that time
						t.Errorf("an IPv%d datagram from x to %s: error %v after %v, want an answer to the first datagram", version, to.port.Name, err, took)
					}
				}
			}
			for _, end := range ends {
				must.Succeed(t, end())
			}
		})
	}
}
