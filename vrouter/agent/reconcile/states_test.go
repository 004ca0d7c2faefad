package reconcile

import (
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/vishvananda/netlink"

	"windtunnel/internal/must"
	"windtunnel/vrouter/agent/agenttest"
	"windtunnel/vrouter/agent/netdev"
	"windtunnel/vrouter/datapath"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
	"windtunnel/vrouter/model/modeltest"
)

// statesVariable is the number of random states to apply.
const statesVariable = "VROUTER_STATES"

// statesWanted returns the number of states, by default few.
func statesWanted(t *testing.T, few int) int {
	t.Helper()
	text := os.Getenv(statesVariable)
	if text == "" {
		return few
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s=%s is no number of states", statesVariable, text)
	}
	return n
}

// TestTheMapsFollowAnySequenceOfStates takes random desired states the way that
// a request takes them (checked, numbered, compiled, written), and reads the
// maps after each. Most states are written as differences from the last state. In between,
// the agent restarts, or a write fails after some entries.
func TestTheMapsFollowAnySequenceOfStates(t *testing.T) {
	t.Parallel()
	b := newWriter(t, agenttest.TestLimits.Routes)
	r := rand.New(rand.NewPCG(7, 11))
	var s model.State
	node, taken, refused, written := "", 0, 0, 0
	began := time.Now()
	for i := range statesWanted(t, must.Rounds(400)) {
		if i%20 == 0 { // another fleet; between them one thing changes at a time
			s = modeltest.Random(r, 5+r.IntN(60))
			node = s.Nodes[r.IntN(len(s.Nodes))].Name
			b.become(t, node)
		} else {
			s = modeltest.Mutate(r, s)
		}
		if _, has := s.Node(node); !has {
			if err := b.take(s, r); err == nil {
				t.Fatalf("state %d: a state without this node was taken", i)
			}
			refused++
		} else {
			b.readdress(t, s)
			if err := b.take(s, r); err != nil {
				t.Fatalf("state %d: %v", i, err)
			}
			taken++
		}
		got := must.Get(b.Plane().Dump())(t)
		if d := cmp.Diff(b.tables, got, sameAddresses); d != "" {
			t.Fatalf("after state %d the maps are not the tables (-want +got):\n%s", i, d)
		}
		written += len(got.Routes)
	}
	t.Logf("%d states taken, %d refused as without this node, %.1f routes each, %v", taken, refused, float64(written)/float64(taken+refused), time.Since(began))
	if taken == 0 || written == 0 || b.updates < taken/2 {
		t.Error("nothing was compared")
	}
}

var sameAddresses = cmpopts.EquateComparable(netip.Addr{}, netip.AddrPort{}, netip.Prefix{})

// writer is a reconciler that makes no passes. It checks states and writes their tables. It
// assumes that every port has a device.
type writer struct {
	*Reconciler
	fabric *netdev.Space
	tables fib.Tables // without names, which the maps do not store
	// updates is the number of states that were written as differences.
	updates int
	owners  map[uint32]string // names of the nexthops in the maps, by id
}

func newWriter(t testing.TB, routes uint32) *writer {
	t.Helper()
	f := agenttest.NewFleet(t)
	c, log := f.Config("a"), slog.New(slog.DiscardHandler)
	c.Limits.Routes, c.Limits.Vifs, c.Limits.Nexthops = routes, 256, 1024 // a node of a random state has up to 100 ports
	s := must.Get(netdev.OpenNode(c))(t)
	p := must.Get(netdev.OpenPrograms(c, log, s, func(datapath.DropEvent) {}))(t)
	w := &writer{Reconciler: New(c, log, s, p, nil, nil, nil), fabric: f.A}
	w.Last, w.Limits = &Pass{Compiled: &fib.Compiled{}}, datapath.Limits{}.WithDefaults()
	pinned := c.PinsDir() // read now, because become changes the configuration
	t.Cleanup(func() {
		p.Unfollow()
		if err := p.Plane().Remove(); err != nil {
			t.Error(err)
		}
		if err := datapath.UnmountPins(pinned); err != nil {
			t.Error(err)
		}
		s.Close()
	})
	// Every address is reached through the fabric.
	for _, everything := range []string{"0.0.0.0/0", "::/0"} {
		gateway := map[bool]string{true: "172.31.0.254", false: "fd31::fe"}[everything == "0.0.0.0/0"]
		if everything == "::/0" {
			agenttest.Addressed(t, f.A, "fab0", "fd31::1/64")
		}
		must.Succeed(t, f.A.Links.RouteAdd(&netlink.Route{
			LinkIndex: agenttest.LinkIn(t, f.A, "fab0").Attrs().Index, Dst: netdev.IPNet(netip.MustParsePrefix(everything)), Gw: netip.MustParseAddr(gateway).AsSlice(),
		}))
	}
	return w
}

// become makes the writer the agent of another node, without ids.
func (w *writer) become(t *testing.T, node string) {
	t.Helper()
	w.config.Node = node
	w.Want, w.owners = &Desired{Node: node, ids: &fib.IDs{}}, nil
	w.restart()
}

// restart makes the writer an agent that has just started: it knows only the ids.
func (w *writer) restart() {
	w.Want = &Desired{Node: w.Want.Node, ids: w.Want.ids}
	w.written, w.Last = nil, &Pass{Compiled: &fib.Compiled{}}
}

// readdress sets the fabric's addresses to the node's addresses of a state.
func (w *writer) readdress(t *testing.T, s model.State) {
	t.Helper()
	self, _ := s.Node(w.config.Node)
	l := agenttest.LinkIn(t, w.fabric, "fab0")
	all := must.Get(w.fabric.Links.AddrList(l, netlink.FAMILY_ALL))(t)
	var have []netip.Addr
	for _, a := range all {
		prefix, _ := netdev.PrefixOf(a.IPNet)
		have = append(have, prefix.Addr())
		if prefix.IsSingleIP() && !slices.Contains(self.Underlay, prefix.Addr()) {
			must.Succeed(t, w.fabric.Links.AddrDel(l, &a))
		}
	}
	for _, a := range self.Underlay {
		if !slices.Contains(have, a) {
			agenttest.Addressed(t, w.fabric, "fab0", fmt.Sprintf("%s/%d", a, a.BitLen()))
		}
	}
}

// take applies a desired state to the test's agent as putState does, but opens no
// files and no devices.
func (w *writer) take(s model.State, r *rand.Rand) error {
	if err := s.WithDefaults().Validate(); err != nil {
		return err
	}
	slice := s.Slice(w.config.Node)
	next := NewDesired(w.config.Node, slice, w.Want.ids, w.Want)
	whole := NewDesired(w.config.Node, slice, w.Want.ids, nil)
	if d := cmp.Diff(whole.Whole(), next.Whole(), sameAddresses); d != "" {
		return fmt.Errorf("the desired state made from the former state is not the whole one (-whole +made):\n%s", d)
	}
	if err := w.Check(next, false); err != nil {
		return err
	}
	w.Want = next
	f, err := w.assume(next)
	if err != nil {
		return err
	}
	f.links = map[netip.Addr]link{}
	for i, n := range s.Nodes {
		if a := n.LocatorAddress(); a.IsValid() {
			f.links[a] = link{state: []fib.Link{fib.LinkWorks, fib.LinkUntested}[i%2]}
		}
	}
	compiled, err := f.compile(next, numbers(w.Limits), false, w.Last.Compiled)
	if err != nil {
		return err
	}
	tables := compiled.All()
	for id, name := range tables.Names { // while the maps are written, routes still lead to the ids of before
		if owner, taken := w.owners[id]; taken && owner != name {
			return fmt.Errorf("nexthop %q gets id %d of %q, to which routes in the maps may lead", name, id, owner)
		}
	}
	w.Last.Compiled = compiled
	switch chance := r.IntN(12); {
	case w.written == nil || chance == 0:
		_, err = w.Plane().Apply(tables)
	case chance == 1: // a write that ends after some entries
		before, part := compiled.Since(w.written)
		maps.DeleteFunc(part.Routes, func(fib.RouteKey, layout.Route) bool { return r.IntN(2) == 0 })
		maps.DeleteFunc(part.Bridge, func(layout.BridgeKey, layout.BridgeEntry) bool { return r.IntN(2) == 0 })
		if _, err := w.Plane().Update(before, part); err != nil {
			return err
		}
		_, err = w.Plane().Apply(tables)
	default:
		_, err = w.Plane().Update(compiled.Since(w.written))
		w.updates++
	}
	if err != nil {
		return err
	}
	w.owners = tables.Names
	if w.wrote(compiled, next.ids); r.IntN(15) == 0 {
		w.restart()
	}
	again, err := w.Plane().Apply(tables)
	if err == nil && again != (datapath.Changes{}) {
		err = fmt.Errorf("writing the same tables again made changes: %+v", again)
	}
	w.tables = nameless(tables)
	return err
}

// nameless returns tables without names, because the kernel's maps have no names.
func nameless(t fib.Tables) fib.Tables {
	t.Ports, t.Names = nil, nil
	return t
}
