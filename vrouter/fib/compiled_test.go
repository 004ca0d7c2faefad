package fib

import (
	"maps"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"windtunnel/internal/must"
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
				tables = compiled.Tables
				tables.Routes, tables.Bridge, tables.Senders = routes, bridge, senders
				changes++
			}
			written = compiled
			whole := must.Get(Compile(s.WithDefaults().Slice(node), node, facts, ids.Clone(), nil))(t)
			if d := cmp.Diff(whole.All(), tables, cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{})); d != "" {
				t.Fatalf("seed %d: -whole +updated\n%s", seed, d)
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
