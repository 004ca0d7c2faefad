package fib

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
)

// wide has ports on three nodes and two gateways, for one route between them.
func wide(via ...model.Via) model.State {
	s := pairOf(model.Node{Underlay: addrs("192.0.2.1")}, model.Node{Underlay: addrs("192.0.2.2")}, model.L3)
	s.Nodes = append(s.Nodes, model.Node{Name: "c", Underlay: addrs("192.0.2.3"), Encapsulations: encaps("v")})
	s.Ports = append(s.Ports, model.Port{Name: "pc", Network: "red", Node: "c", MAC: model.MAC{2, 0, 0, 0, 0, 3}, IPs: addrs("10.1.0.4")})
	s.Gateways = []model.Gateway{
		{Name: "mx", Addresses: addrs("192.0.2.9"), Encapsulation: model.MPLSoGRE, Networks: []model.GatewayNetwork{{Network: "red", Label: 100}}},
		{Name: "tor", Addresses: addrs("192.0.2.10"), Encapsulation: model.VXLAN, Networks: []model.GatewayNetwork{{Network: "red", VNI: 900}}},
	}
	s.Routes = []model.Route{{Network: "red", Prefix: prefix("10.9.0.0/16"), Via: via}}
	return s
}

// ways returns the names and labels of a route's members.
func ways(t Tables, p netip.Prefix) (all []string, composite bool) {
	r := t.Routes[RouteKey{7, p}]
	n := t.nexthop(r.Nexthop)
	if n.Type != layout.Composite {
		n.Members = []layout.Member{{Nexthop: r.Nexthop, Label: r.Label}}
	}
	for _, m := range n.Members {
		all = append(all, fmt.Sprint(t.Names[m.Nexthop], " ", m.Label))
	}
	return all, t.Nexthops[r.Nexthop].Type == layout.Composite
}

func TestPathsOfARouteHaveTheirLabels(t *testing.T) {
	pa, pb, pc := model.Via{Port: "pa"}, model.Via{Port: "pb"}, model.Via{Port: "pc"}
	mx, tor := model.Via{Gateway: "mx"}, model.Via{Gateway: "tor"}
	for _, c := range []struct {
		via       []model.Via
		want      []string
		composite bool
	}{
		{[]model.Via{pa}, []string{"port pa 0"}, false},
		{[]model.Via{pb}, []string{"tunnel b mpls-udp 30"}, false}, // label 16 + 2·7
		{[]model.Via{pc}, []string{"tunnel c vxlan 700"}, false},   // VNI
		{[]model.Via{mx}, []string{"tunnel gateway mx mpls-gre 100"}, false},
		{[]model.Via{tor}, []string{"tunnel gateway tor vxlan 900"}, false},
		{[]model.Via{tor, pb, pa, mx, pc}, []string{"tunnel gateway tor vxlan 900", "tunnel b mpls-udp 30", "port pa 0", "tunnel gateway mx mpls-gre 100", "tunnel c vxlan 700"}, true},
	} {
		tables, warnings := compiled(t, wide(c.via...), nil)
		got, composite := ways(tables, prefix("10.9.0.0/16"))
		if !slices.Equal(got, c.want) || composite != c.composite || len(warnings) > 0 {
			t.Errorf("%v: %q (composite %v), want %q; warnings %q", c.via, got, composite, c.want, warnings)
		}
	}
}

// Flows refer to the composite's id. The id must stay the same when next hops are
// added or removed.
func TestACompositeKeepsItsNumberWhilePathsChange(t *testing.T) {
	s := wide(model.Via{Port: "pa"}, model.Via{Port: "pb"}).WithDefaults()
	ids := &IDs{}
	compile := func(absent map[string]bool) (uint32, nexthop) {
		tables, _, err := compile(s, "a", factsFor(s, "a", absent), ids)
		must.Succeed(t, err)
		ids.Prune()
		id := tables.Routes[RouteKey{7, prefix("10.9.0.0/16")}].Nexthop
		return id, tables.nexthop(id)
	}
	id, two := compile(nil)
	less, one := compile(map[string]bool{"pa": true})
	again, both := compile(nil)
	if id == 0 || less != id || again != id || len(two.Members) != 2 || len(one.Members) != 1 || one.Type != layout.Composite || !reflect.DeepEqual(two, both) {
		t.Errorf("nexthop %d %+v, without a device %d %+v, then %d %+v", id, two, less, one, again, both)
	}
}

func TestARouteWithoutAPathDiscardsPacketsWithAWarning(t *testing.T) {
	s := wide(model.Via{Port: "pa"}).WithDefaults()
	for i := range s.Ports {
		s.Ports[i].Attach.Netns = s.Ports[i].Name
	}
	tables, warnings, err := compile(s, "a", factsFor(s, "a", map[string]bool{"pa": true}), &IDs{})
	must.Succeed(t, err)
	r, has := tables.Routes[RouteKey{7, prefix("10.9.0.0/16")}]
	want := []string{`route 10.9.0.0/16 of network "red" has no reachable next hop: its packets are dropped`}
	if !has || r != (layout.Route{}) || !slices.Equal(warnings, want) {
		t.Errorf("route %+v (%v), warnings %q; want one that discards, and %q", r, has, warnings, want)
	}
}

func TestADiscardRouteHasNoNexthopAndNoWarning(t *testing.T) {
	s := wide()
	s.Routes[0].Discard = true
	tables, warnings := compiled(t, s, nil)
	if r, has := tables.Routes[RouteKey{7, prefix("10.9.0.0/16")}]; !has || r != (layout.Route{}) || len(warnings) > 0 {
		t.Errorf("route %+v (%v), warnings %q", r, has, warnings)
	}
}

func TestNetworksWithoutPortsHereAreNotInTheTables(t *testing.T) {
	s := wide(model.Via{Port: "pb"})
	s.Ports = s.Ports[1:]
	tables, warnings := compiled(t, s, nil)
	if len(tables.VRFs)+len(tables.Routes)+len(tables.Nexthops)+len(tables.ILM)+len(tables.VNIs) != 0 || len(warnings) != 0 {
		t.Errorf("the tables are %+v, warnings %q", tables, warnings)
	}
	if len(tables.Remotes) != 4 {
		t.Errorf("%d may send, want b, c and two gateways: other nodes' states may be ahead", len(tables.Remotes))
	}
}
