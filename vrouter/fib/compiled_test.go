package fib

import (
	"maps"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"windtunnel/internal/must"
	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
	"windtunnel/vrouter/model/modeltest"
)

// TestChangesGiveTheTablesOfAWholeCompile changes random states, devices and links. After
// each change it updates tables by the differences, skips some changes, and compares the
// tables with those of a compilation from the beginning.
func TestChangesGiveTheTablesOfAWholeCompile(t *testing.T) {
	changes := 0
	for seed := range uint64(25) {
		r := rand.New(rand.NewPCG(seed, 8))
		s := modeltest.Random(r, 5+r.IntN(40))
		node, ids := s.Nodes[r.IntN(len(s.Nodes))].Name, &IDs{}
		var last, written *Compiled
		var tables Tables
		for range 40 {
			if s = modeltest.Mutate(r, s); !has(s, node) {
				break
			}
			absent := map[string]bool{}
			for _, p := range s.Ports {
				absent[p.Name] = r.IntN(8) == 0
			}
			facts := factsFor(s, node, absent)
			shift := Link(r.IntN(8) / 7)
			facts.Link = func(a netip.Addr, oif uint32) Link { return (linkOf(a, oif) + shift) % 4 }
			compiled := must.Get(Compile(s.WithDefaults().Slice(node), node, facts, ids, last))(t)
			last = compiled
			if written != nil && r.IntN(4) == 0 {
				continue // the data path was not written
			}
			if written == nil {
				tables = compiled.All()
			} else {
				before, after := compiled.Since(written)
				routes, bridge, senders := changed(tables.Routes, before.Routes, after.Routes), changed(tables.Bridge, before.Bridge, after.Bridge), changed(tables.Senders, before.Senders, after.Senders)
				vifs, nexthops := changed(tables.Vifs, before.Vifs, after.Vifs), changed(tables.Nexthops, before.Nexthops, after.Nexthops)
				for i, part := range []Tables{before, after} {
					for id, n := range []*Compiled{written, compiled}[i].Nexthops {
						if _, has := part.Vifs[n.Oif]; n.Type == layout.Encap && has && part.Nexthops[id] != n {
							t.Fatalf("seed %d: Since returns the vif of device %d without nexthop %d, which leads to it", seed, n.Oif, id)
						}
					}
					for ifindex, v := range part.Vifs {
						if part.Nexthops[v.Nexthop].Oif != ifindex {
							t.Fatalf("seed %d: Since returns vif %+v without its nexthop", seed, v)
						}
					}
					for id, n := range part.Nexthops {
						if n.Type == layout.Encap && part.Vifs[n.Oif].ID != n.Vif {
							t.Fatalf("seed %d: Since returns nexthop %d, %+v, without the vif to which it leads", seed, id, n)
						}
					}
				}
				tables = compiled.Tables
				tables.Routes, tables.Bridge, tables.Senders, tables.Vifs, tables.Nexthops = routes, bridge, senders, vifs, nexthops
				changes++
			}
			written = compiled
			whole := must.Get(Compile(s.WithDefaults().Slice(node), node, facts, ids.Clone(), nil))(t)
			if d := cmp.Diff(whole.All(), tables, cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{})); d != "" {
				t.Fatalf("seed %d: -whole +updated\n%s", seed, d)
			}
			if r.IntN(4) == 0 {
				if d := cmp.Diff(whole.All(), reconnected(t, s, node, facts, ids, r).All(), cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{})); d != "" {
					t.Fatalf("seed %d: -Compile +Reconnect\n%s", seed, d)
				}
			}
			if n := compiled.RouteCount(); n != len(tables.Routes) {
				t.Fatalf("seed %d: %d routes are counted, want %d", seed, n, len(tables.Routes))
			}
			if d := cmp.Diff(whole.count, compiled.count, cmp.AllowUnexported(place{}, tally{})); d != "" {
				t.Fatalf("seed %d: counted ports -whole +updated\n%s", seed, d)
			}
		}
	}
	if changes < 300 {
		t.Errorf("only %d changes were compared", changes)
	}
}

// reconnected calls Compile with invented devices for some of the ports, and then Reconnect with the devices in facts.
func reconnected(t *testing.T, s model.State, node string, facts Facts, ids *IDs, r *rand.Rand) *Compiled {
	t.Helper()
	assumed := facts
	assumed.Ports = map[string]PortFact{}
	for name, f := range facts.Ports {
		if r.IntN(3) > 0 { // else it has its device already
			f = PortFact{Ifindex: f.Ifindex + 1<<30, Peer: !f.Peer, Netkit: !f.Netkit}
		}
		assumed.Ports[name] = f
	}
	c := must.Get(Compile(s.WithDefaults().Slice(node), node, assumed, ids.Clone(), nil))(t)
	if !c.Reconnect(assumed.Ports, facts.Ports, Limits{}) {
		t.Fatal("the ports did not get their devices")
	}
	return c
}

// translating returns a state whose node a connects itself, and translates packets to outside the network.
func translating() model.State {
	s := accessed()
	s.Networks[0].NATPool = []netip.Prefix{prefix("203.0.113.8/32")}
	return s.WithDefaults()
}

// Several nexthops lead to the device of the port that connects the node.
func TestAllNexthopsFollowTheirDevice(t *testing.T) {
	s, ids, r := translating(), &IDs{}, rand.New(rand.NewPCG(1, 1))
	facts := factsFor(s, "a", nil)
	want := must.Get(Compile(s.Slice("a"), "a", facts, ids, nil))(t)
	for range 10 {
		got := reconnected(t, s, "a", facts, ids, r)
		if d := cmp.Diff(want.All(), got.All(), cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{})); d != "" {
			t.Fatalf("-Compile +Reconnect\n%s", d)
		}
	}
	s.Settings.FlowExport.Collector = model.Collector{AddrPort: netip.MustParseAddrPort("192.0.2.9:4739")}
	exporting := must.Get(Compile(s.WithDefaults().Slice("a"), "a", facts, ids, want))(t)
	nexthops := 0
	for id, n := range exporting.Nexthops {
		if n.Type == layout.Encap {
			if nexthops++; want.Nexthops[id] != n {
				t.Errorf("nexthop %d is %+v with flow export; want no change from %+v", id, n, want.Nexthops[id])
			}
		}
	}
	_, after := exporting.Since(want)
	for id, n := range after.Nexthops {
		if after.Vifs[n.Oif].ID != n.Vif {
			t.Errorf("Since returns nexthop %d without the vif to which it leads", id)
		}
		nexthops--
	}
	if nexthops != 0 || len(after.Nexthops) < 2 {
		t.Errorf("all vifs have changed, so Since must return all nexthops that lead to vifs, at least 2; it returns %d, and %d are missing", len(after.Nexthops), nexthops)
	}
	for id, n := range want.Nexthops {
		if n.Type != layout.Encap {
			continue
		}
		former := *want
		former.Nexthops = maps.Clone(want.Nexthops)
		delete(former.Nexthops, id)
		before, after := want.Since(&former)
		for other, o := range want.Nexthops {
			_, had := before.Nexthops[other]
			_, has := after.Nexthops[other]
			if leads := o.Type == layout.Encap && o.Oif == n.Oif; had != (leads && other != id) || has != leads {
				t.Errorf("nexthop %d to device %d was added: Since returns nexthop %d to device %d in the former tables: %v, in the new ones: %v; want %v and %v", id, n.Oif, other, o.Oif, had, has, leads && other != id, leads)
			}
		}
	}
}

// Reconnect refuses if a port has no device, or an id exceeds its limit: Compile then leaves out the port, or returns an error.
func TestTablesAreNotReconnectedWhereCompileDecidesOtherwise(t *testing.T) {
	s := translating()
	facts := factsFor(s, "a", nil)
	c := must.Get(Compile(s.Slice("a"), "a", facts, &IDs{}, nil))(t)
	fewer, nexthops, vifs := maps.Clone(facts.Ports), uint32(0), uint32(0)
	for name := range fewer {
		delete(fewer, name)
		break
	}
	for id := range c.Nexthops {
		nexthops = max(nexthops, id)
	}
	for id := range c.Ports {
		vifs = max(vifs, id)
	}
	other := maps.Clone(fewer)
	other["other"] = PortFact{Ifindex: 1 << 20}
	for name, is := range map[string]struct {
		ports  map[string]PortFact
		limits Limits
		want   bool
	}{
		"all":            {facts.Ports, Limits{Nexthops: nexthops + 1, Vifs: vifs}, true},
		"a port less":    {fewer, Limits{}, false},
		"another port":   {other, Limits{}, false},
		"nexthops limit": {facts.Ports, Limits{Nexthops: nexthops}, false},
		"vifs limit":     {facts.Ports, Limits{Vifs: vifs - 1}, false},
	} {
		if got := c.Reconnect(facts.Ports, is.ports, is.limits); got != is.want {
			t.Errorf("%s: Reconnect returns %v, want %v", name, got, is.want)
		}
	}
}

func has(s model.State, node string) bool {
	_, has := s.Node(node)
	return has
}

func changed[K comparable, V any](all, before, after map[K]V) map[K]V {
	all = maps.Clone(all)
	for k := range before {
		delete(all, k)
	}
	maps.Copy(all, after)
	return all
}
