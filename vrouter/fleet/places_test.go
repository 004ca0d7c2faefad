package fleet

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"windtunnel/internal/must"
	"windtunnel/vrouter/model"
	"windtunnel/vrouter/store"
	"windtunnel/vrouter/store/storetest"
)

// breaking is a store whose watches can be ended.
type breaking struct {
	store.Store
	mu      sync.Mutex
	watches map[*context.CancelCauseFunc]store.Span
}

func (b *breaking) Watch(ctx context.Context, s store.Span, after int64, changed func(store.Changes), alive func()) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	b.mu.Lock()
	b.watches[&end] = s
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		delete(b.watches, &end)
		b.mu.Unlock()
	}()
	return b.Store.Watch(ctx, s, after, changed, alive)
}

// end ends one watch with an error.
func (b *breaking) end(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for end := range b.watches {
		(*end)(err)
		return
	}
}

// spans returns the keys that a node's agent watches.
func (b *breaking) spans() (all []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.watches {
		all = append(all, s.From)
	}
	slices.Sort(all)
	return all
}

// agentOf starts the copy of a node's agent with a maximum number of places; 0: the default.
func agentOf(t *testing.T, c *storetest.Cluster, node string, limit int) (*Fleet, *breaking) {
	t.Helper()
	b := &breaking{Store: openEtcd(t, c), watches: map[*context.CancelCauseFunc]store.Span{}}
	return followWith(t, b, Options{Lease: 3 * time.Second, Node: node, maxPlaces: limit}), b
}

// threeNodes is a fleet of three nodes with four networks.
func threeNodes() model.State {
	s := small()
	s.Nodes = append(s.Nodes, model.Node{Name: "c", Underlay: addresses("192.0.2.3")})
	s.Networks = nil
	for i := range 4 {
		s.Networks = append(s.Networks, model.Network{Name: fmt.Sprint("n", i), ID: uint32(i + 1), Subnets: prefixes(fmt.Sprintf("10.%d.0.0/16", i))})
	}
	return s
}

// sameSlice waits until a copy and the copy of all ports give the same slice for a node.
func sameSlice(t *testing.T, f, all *Fleet, node string) {
	t.Helper()
	must.Eventually(t, "the slice of node "+node, func() error {
		var want, got string
		all.Peek(func(v *View) { want = fmt.Sprintf("%+v", v.Slice(node, nil).Whole()) })
		f.Peek(func(v *View) { got = fmt.Sprintf("%+v", v.Slice(node, nil).Whole()) })
		if got == want && got != "" {
			return nil
		}
		return fmt.Errorf("%s\nin the copy of all ports:\n%s", got, want)
	})
}

// The copy of a node's agent gives the same slice as a copy of all ports, whatever changes
// and whichever watch ends.
func TestTheSliceOfANodeNeedsOnlyThePortsAroundIt(t *testing.T) {
	t.Parallel()
	for limit, name := range map[int]string{maxPlaces: "place by place", 3: "until there are too many places"} {
		t.Run(name, func(t *testing.T) {
			c := storetest.Start(t, 1, nil)
			all := follow(t, openEtcd(t, c))
			apply(t, all, threeNodes())
			nodes := []string{"a", "b", "c"}
			agents, stores := map[string]*Fleet{}, map[string]*breaking{}
			for _, n := range nodes {
				agents[n], stores[n] = agentOf(t, c, n, limit)
			}
			r := rand.New(rand.NewPCG(3, 4))
			whole := map[string]bool{} // the copy of the node had the ports of all networks at a time
			some := func() string { return nodes[r.IntN(3)] }
			for i := range 150 {
				f := agents[some()]
				name := fmt.Sprint("p", r.IntN(12))
				var err error
				switch r.IntN(9) {
				case 0, 1, 2:
					_, _, err = f.AddPort(ctx(t), model.PortRequest{Port: model.Port{Name: name, Network: fmt.Sprint("n", r.IntN(4)), Node: some()}})
				case 3, 4:
					_, err = f.DeletePort(ctx(t), name, nil)
				case 5:
					_, err = f.UpdatePort(ctx(t), name, func(p *model.Port) error { p.Node = some(); return nil })
				case 6:
					err = f.unlist(ctx(t), some())
				case 7:
					_, err = f.UpdateNetwork(ctx(t), fmt.Sprint("n", r.IntN(4)), func(n *model.Network) error {
						n.Import, n.Export = []model.RouteTarget{{0, 2, 1, 7: byte(r.IntN(3))}}, []model.RouteTarget{{0, 2, 1, 7: byte(r.IntN(3))}}
						return nil
					})
				case 8:
					stores[some()].end([]error{store.ErrCompacted, store.ErrUnavailable}[r.IntN(2)])
				}
				var refused *Refusal
				if err != nil && !errors.As(err, &refused) {
					t.Fatal(err)
				}
				if i%10 == 9 {
					for _, n := range nodes {
						sameSlice(t, agents[n], all, n)
						agents[n].Peek(func(v *View) { whole[n] = whole[n] || !v.part })
					}
				}
			}
			for _, n := range nodes {
				if whole[n] != (limit < maxPlaces) {
					t.Errorf("the copy of node %s had the ports of all networks: %v, want %v", n, whole[n], !whole[n])
				}
			}
			consistent(t, all)
		})
	}
}

// An agent that needs too many places watches all ports. When it needs half of the limit, it
// watches them one by one again.
func TestAnAgentWatchesFewPlacesOneByOneAgain(t *testing.T) {
	t.Parallel()
	c := storetest.Start(t, 1, nil)
	all := follow(t, openEtcd(t, c))
	s := threeNodes()
	for i := range 4 {
		s.Ports = append(s.Ports, model.Port{Name: fmt.Sprint("p", i), Network: fmt.Sprint("n", i), Node: "a", MAC: model.MAC{2, 0, 0, 0, 0, byte(i)}, IPs: addresses(fmt.Sprintf("10.%d.0.10", i))})
	}
	apply(t, all, s)
	f, watched := agentOf(t, c, "a", 3)
	check := func(want int) {
		t.Helper()
		must.Eventually(t, "the agent's watches", func() error {
			if got := watched.spans(); len(got) != want {
				return fmt.Errorf("%q, want %d spans", got, want)
			}
			return nil
		})
		sameSlice(t, f, all, "a")
	}
	check(1)
	for i := range 3 {
		must.Get(f.DeletePort(ctx(t), fmt.Sprint("p", i), nil))(t)
	}
	must.Succeed(t, f.unlist(ctx(t), "a"))
	check(2)
}

// An agent watches only the places of networks that have ports on its node. It forgets a
// network when the last port of the network is deleted.
func TestAnAgentWatchesThePlacesOfItsNetworks(t *testing.T) {
	t.Parallel()
	c := storetest.Start(t, 1, nil)
	all := follow(t, openEtcd(t, c))
	s := threeNodes()
	for i, node := range []string{"b", "b", "c", "c"} {
		s.Ports = append(s.Ports, model.Port{Name: fmt.Sprint("p", i), Network: fmt.Sprint("n", i%2), Node: node, MAC: model.MAC{2, 0, 0, 0, 0, byte(i)}, IPs: addresses(fmt.Sprintf("10.%d.0.%d", i%2, 10+i))})
	}
	apply(t, all, s)
	f, watched := agentOf(t, c, "a", 0)
	check := func(when string, ports int, want ...string) {
		t.Helper()
		want = append([]string{""}, want...)
		must.Eventually(t, when, func() error {
			if got := watched.spans(); !slices.Equal(got, want) {
				return fmt.Errorf("the agent watches %q, want %q", got, want)
			}
			return nil
		})
		if err := f.await(ctx(t), func() bool { return f.view != nil && len(f.view.ports) == ports }); err != nil {
			f.Peek(func(v *View) { t.Errorf("%s: the copy has %d ports, want %d", when, len(v.ports), ports) })
		}
	}
	check("without ports", 0)
	for _, name := range []string{"x", "y"} {
		if _, _, err := f.AddPort(ctx(t), model.PortRequest{Port: model.Port{Name: name, Network: "n0", Node: "a"}}); err != nil {
			t.Fatal(err)
		}
		f.Peek(func(v *View) {
			if n := len(v.Slice("a", nil).All); name == "x" && n != 3 {
				t.Errorf("when the first port of a network is added, the slice has %d ports, want 3", n)
			}
		})
	}
	places := []string{"switch-ports/a/n0/", "switch-ports/b/n0/", "switch-ports/c/n0/"}
	check("with ports in n0", 4, places...)
	watched.end(store.ErrCompacted)
	check("after ErrCompacted", 4, places...)
	if _, err := f.DeletePort(ctx(t), "p1", nil); err != nil { // a port of a network that the node does not have
		t.Fatal(err)
	}
	for _, name := range []string{"x", "y"} {
		must.Get(f.DeletePort(ctx(t), name, nil))(t)
	}
	must.Succeed(t, f.unlist(ctx(t), "a"))
	check("after the last port of n0", 0)
	f.Peek(func(v *View) {
		if v.index.keys+len(v.members)+len(v.hosts["b"]) > 0 {
			t.Errorf("of a network that left the node the copy keeps %d MACs and addresses, members %v and hosts %v, want none", v.index.keys, v.members, v.hosts)
		}
	})
	if err := all.await(ctx(t), func() bool { return len(all.view.ports) == 3 }); err != nil {
		t.Errorf("the fleet has %d ports, want 3", len(state(t, all).Ports))
	}
}

// A change through an agent that lacks the ports of a network is checked like any other.
func TestAnAgentChecksAgainstPortsThatItLacks(t *testing.T) {
	t.Parallel()
	c := storetest.Start(t, 1, nil)
	all := follow(t, openEtcd(t, c))
	s := threeNodes()
	s.Policies = append(s.Policies, model.Policy{Name: "p"})
	s.Ports = []model.Port{{Name: "there", Network: "n1", Node: "b", MAC: model.MAC{2, 0, 0, 0, 0, 1}, IPs: addresses("10.1.0.9"), Policies: []string{"p"}}}
	apply(t, all, s)
	f, _ := agentOf(t, c, "a", 0)
	for what, try := range map[string]struct {
		change func() error
		want   Why
	}{
		"a port with its name": {func() error {
			_, _, err := f.AddPort(ctx(t), model.PortRequest{Port: model.Port{Name: "there", Network: "n0", Node: "a"}})
			return err
		}, Exists},
		"a port with its address": {func() error {
			_, _, err := f.AddPort(ctx(t), model.PortRequest{Port: model.Port{Name: "x", Network: "n1", Node: "a", IPs: addresses("10.1.0.9")}})
			return err
		}, Exists},
		"the deletion of its policy":  {func() error { return f.DeletePolicy(ctx(t), "p") }, InUse},
		"the deletion of its network": {func() error { return f.DeleteNetwork(ctx(t), "n1") }, InUse},
		"the deletion of its node":    {func() error { return f.DeleteNode(ctx(t), "b", false) }, InUse},
		"a subnet without it": {func() error {
			_, err := f.UpdateNetwork(ctx(t), "n1", func(n *model.Network) error { n.Subnets = prefixes("10.9.0.0/16"); return nil })
			return err
		}, Invalid},
		"its route by a port that does not exist": {func() error {
			return f.PutRoute(ctx(t), model.Route{Network: "n1", Prefix: prefixes("10.77.0.0/16")[0], Via: []model.Via{{Port: "none"}}})
		}, Invalid},
		"the deletion of a port that does not exist": {func() error { _, err := f.DeletePort(ctx(t), "none", nil); return err }, NotFound},
		"a document without its network":             {func() error { s := s; s.Networks = s.Networks[:1]; return f.Apply(ctx(t), s) }, Invalid},
	} {
		if err := try.change(); !IsWhy(err, try.want) {
			t.Errorf("%s: error %v, want the reason %d", what, err, try.want)
		}
	}
	if p, known, err := f.FindPort(ctx(t), "there"); err != nil || !known || p.Node != "b" {
		t.Errorf("FindPort: %+v, known %v, %v; want the port on node b", p, known, err)
	}
	if _, known, err := f.FindPort(ctx(t), "none"); err != nil || known {
		t.Errorf("FindPort of a missing port: known %v, %v; want neither", known, err)
	}
	must.Succeed(t, f.PutRoute(ctx(t), model.Route{Network: "n1", Prefix: prefixes("10.77.0.0/16")[0], Via: []model.Via{{Port: "there"}}}))
	if _, err := f.UpdatePort(ctx(t), "there", func(p *model.Port) error { p.Node = "c"; return nil }); err != nil {
		t.Error(err)
	}
	if p, _, err := f.FindPort(ctx(t), "there"); err != nil || p.Node != "c" {
		t.Errorf("FindPort of a moved port: %+v, %v; want the port on node c", p, err)
	}
	// Index keys without a port reserve nothing.
	writeKeys(t, all, store.Commit{Put: map[string][]byte{inNames + "free": []byte("x"), addressKey("n0", addresses("10.0.0.77")[0]): nil}})
	add(t, f, model.Port{Name: "free", Network: "n0", Node: "a", IPs: addresses("10.0.0.77")})
	must.Succeed(t, f.Apply(ctx(t), model.State{Nodes: s.Nodes, Networks: s.Networks}))
	if err := all.await(ctx(t), func() bool { return len(all.view.ports) == 0 }); err != nil {
		t.Errorf("after a document without ports the fleet has %+v, want none", state(t, all).Ports)
	}
}

// The agents of many nodes add ports to one network at the same time.
func TestAgentsShareANetworkWithoutItsFormerPorts(t *testing.T) {
	t.Parallel()
	c := storetest.Start(t, 1, nil)
	all := follow(t, openEtcd(t, c))
	apply(t, all, threeNodes())
	var wait sync.WaitGroup
	for _, node := range []string{"a", "b", "c"} {
		f, _ := agentOf(t, c, node, 0)
		for i := range 16 {
			wait.Go(func() {
				if _, _, err := f.AddPort(ctx(t), model.PortRequest{Port: model.Port{Network: "n0", Node: node, Attach: model.Attachment{Netns: fmt.Sprint("ns", i)}}}); err != nil {
					t.Error(err)
				}
			})
		}
		t.Cleanup(func() { sameSlice(t, f, all, node) })
	}
	wait.Wait()
	must.Succeed(t, all.await(ctx(t), func() bool { return len(all.view.ports) == 48 }))
	ips := map[string]bool{}
	for _, p := range state(t, all).Ports {
		ips[p.IPs[0].String()] = true
	}
	must.Equal(t, 48, len(ips))
}

// A node writes a port without the key of its place, so that the other agents do not watch the
// port, and writes that key when another port has the address. The other port keeps it.
func TestAHiddenPortDoesNotBecomeOlder(t *testing.T) {
	t.Parallel()
	c := storetest.Start(t, 1, nil)
	all := follow(t, openEtcd(t, c))
	apply(t, all, small())
	f, _ := agentOf(t, c, "a", 0)
	evil := portOfB("evil", "10.1.0.9")
	writeKeys(t, all, store.Commit{Put: map[string][]byte{portKey(evil): encode(evil)}})
	x := add(t, f, port("x", "10.1.0.9"))
	writeKeys(t, all, store.Commit{Put: map[string][]byte{placeOf(evil).key(): nil}})
	writeKeys(t, all, store.Commit{Put: map[string][]byte{portKey(evil): encode(evil)}})
	late, _ := agentOf(t, c, "b", 0)
	must.Succeed(t, late.await(ctx(t), func() bool { return late.view != nil && len(late.view.ports) == 1 }))
	must.Succeed(t, f.await(ctx(t), func() bool { return f.joined[placeOf(evil)] != nil }))
	for what, f := range map[string]*Fleet{"of all ports": all, "of node a": f, "of node b": late} {
		f.Peek(func(v *View) {
			if at, _ := v.PortAt("red", x.IPs[0]); at.Name != "x" {
				t.Errorf("in the copy %s, %s belongs to port %q, want x", what, x.IPs[0], at.Name)
			}
		})
	}
}

// The key of a place stays for a while after the last port, so that a workload that restarts
// does not concern other nodes.
func TestTheKeyOfAPlaceWithoutPortsIsDeletedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := followWith(t, fileStore(t), Options{Node: "a", Whole: true})
		apply(t, f, small())
		listed := func(when string, want bool) {
			t.Helper()
			f.Peek(func(v *View) {
				if _, is := v.listed["red"]["a"]; is != want {
					t.Errorf("%s: network red is listed for node a: %v, want %v", when, is, want)
				}
			})
		}
		listed("without ports", false)
		add(t, f, port("x"))
		time.Sleep(3 * unlistTime)
		listed("with a port", true)
		must.Get(f.DeletePort(ctx(t), "x", nil))(t)
		time.Sleep(unlistTime - time.Second)
		listed("soon after the last port", true)
		time.Sleep(2 * unlistTime)
		listed("long after the last port", false)
	})
}
