package fleet

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"windtunnel/vrouter/model"
)

// Only nodes whose next hops have alternatives need a test whether they reply.
func TestTheAlternativesOfANode(t *testing.T) {
	f := open(t)
	s := small()
	s.Nodes = append(s.Nodes, model.Node{Name: "c", Underlay: addresses("192.0.2.3", "2001:db8::3")}, model.Node{Name: "d", Underlay: addresses("192.0.2.4")})
	s.Networks = append(s.Networks, model.Network{Name: "blue", ID: 2, Subnets: prefixes("10.2.0.0/24")})
	s.Ports = []model.Port{
		{Name: "a1", Network: "red", Node: "a", MAC: model.MAC{2, 0, 0, 0, 0, 1}, IPs: addresses("10.1.0.11")},
		{Name: "b1", Network: "red", Node: "b", MAC: model.MAC{2, 0, 0, 0, 0, 2}, IPs: addresses("10.1.0.12")},
		{Name: "c1", Network: "red", Node: "c", MAC: model.MAC{2, 0, 0, 0, 0, 3}, IPs: addresses("10.1.0.13")},
		{Name: "c2", Network: "blue", Node: "c", MAC: model.MAC{2, 0, 0, 0, 0, 4}, IPs: addresses("10.2.0.13")},
		{Name: "d2", Network: "blue", Node: "d", MAC: model.MAC{2, 0, 0, 0, 0, 5}, IPs: addresses("10.2.0.14")},
	}
	s.Routes = []model.Route{
		{Network: "red", Prefix: prefixes("172.16.0.0/24")[0], Via: []model.Via{{Port: "a1"}, {Port: "c1"}}},
		{Network: "red", Prefix: prefixes("172.16.1.0/24")[0], Via: []model.Via{{Port: "b1"}}},
		{Network: "blue", Prefix: prefixes("172.16.0.0/24")[0], Via: []model.Via{{Port: "c2"}, {Port: "d2"}}},
	}
	apply(t, f, s)
	set := func(names ...string) map[string]bool {
		all := map[string]bool{}
		for _, n := range names {
			all[n] = true
		}
		return all
	}
	for node, want := range map[string]struct{ alternatives, peers map[string]bool }{
		"a": {set("c"), set("b", "c")},
		"b": {set("a", "c"), set("a", "c")},
		"c": {set("a", "d"), set("a", "b", "d")},
		"d": {set("c"), set("c")},
	} {
		f.Peek(func(v *View) {
			if got := v.Alternatives(node); !maps.Equal(got, want.alternatives) {
				t.Errorf("node %s: alternatives %v, want %v", node, got, want.alternatives)
			}
			if got := v.Peers(node); !maps.Equal(got, want.peers) {
				t.Errorf("node %s: peers %v, want %v", node, got, want.peers)
			}
		})
	}
}

// An agent checks a document before it writes the document to the store. It checks only the
// document's part around its node. So this part must be equal to the slice of the node after the
// write.
func TestThePartOfADocumentAroundANodeIsTheNodesSlice(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 3))
	v, smaller := viewOf(t, model.State{}), 0
	for range 1000 {
		_, _, change := randomChange(r, v)
		next := change(v.State())
		if next.Validate() != nil {
			continue
		}
		v = viewOf(t, next)
		for i := range 3 {
			node := fmt.Sprint("node", i)
			want := v.Slice(node, nil).Whole()
			if diff := cmp.Diff(string(encode(want)), string(encode(v.State().Around(node).Slice(node).Whole()))); diff != "" {
				t.Fatalf("node %s (-want +got):\n%s", node, diff)
			}
			if len(want.Gateways) > 0 && len(want.Routes) > 0 && len(want.Networks) < len(next.Networks) {
				smaller++
			}
		}
	}
	if smaller < 20 {
		t.Errorf("%d slices have gateways, routes and only a part of the networks, want at least 20", smaller)
	}
}
