package fib

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
)

// TestANetworksErrorLeavesTheOthersTheirTables: if one network has too many ports
// for broadcast, the other networks still get their tables.
func TestANetworksErrorLeavesTheOthersTheirTables(t *testing.T) {
	s := model.State{Nodes: []model.Node{{Name: "a", Underlay: addrs("192.0.2.1")}, {Name: "b", Underlay: addrs("192.0.2.2")}}}
	s.Networks = []model.Network{
		{Name: "crowd", ID: 1, Forwarding: model.L2},
		{Name: "red", ID: 2, Subnets: []netip.Prefix{prefix("10.2.0.0/16")}},
	}
	for i := range mostFlood + 1 {
		s.Ports = append(s.Ports, model.Port{Name: fmt.Sprint("c", i), Network: "crowd", Node: "a", MAC: model.MAC{2, 0, 0, 1, byte(i >> 8), byte(i)}})
	}
	s.Ports = append(s.Ports,
		model.Port{Name: "far", Network: "crowd", Node: "b", MAC: model.MAC{2, 0, 0, 2, 0, 1}},
		model.Port{Name: "r", Network: "red", Node: "a", MAC: model.MAC{2, 0, 0, 3, 0, 1}, IPs: addrs("10.2.0.5")},
		model.Port{Name: "q", Network: "red", Node: "b", MAC: model.MAC{2, 0, 0, 3, 0, 2}, IPs: addrs("10.2.0.6")})
	s = withTunnels(s).WithDefaults()
	facts := factsFor(s, "a", nil)
	if _, _, err := compile(s, "a", facts, &IDs{}); err == nil || !strings.Contains(err.Error(), "at most 128 fit") {
		t.Errorf("Compile without Partial: error %v, want the limit of broadcast", err)
	}
	facts.Partial = true
	tables, _, err := compile(s, "a", facts, &IDs{})
	must.Succeed(t, err)
	if len(tables.Refused) != 1 || tables.Refused[0].Network != "crowd" {
		t.Errorf("refused networks: %v, want only \"crowd\"", tables.Refused)
	}
	if _, has := tables.Routes[RouteKey{VRF: 2, Prefix: prefix("10.2.0.6/32")}]; !has || len(tables.Vifs) != mostFlood+2 {
		t.Errorf("%d vifs, want %d; the other network's route exists: %v, want true", len(tables.Vifs), mostFlood+2, has)
	}
	flood := tables.MembersOf(tables.VRFs[1].Flood)
	tunnels := 0
	for _, m := range flood {
		if tables.Nexthops[m.Nexthop].Type == layout.Tunnel {
			tunnels++
		}
	}
	if len(flood) != mostFlood || tunnels != 1 {
		t.Errorf("%d destinations of broadcast with %d tunnels, want %d with 1", len(flood), tunnels, mostFlood)
	}
}

// If the underlay's MTU is too small for IPv6 but not for IPv4, only networks with IPv6
// are refused. If all networks are refused, Compile fails.
func TestANetworkWithoutRoomLeavesTheOthers(t *testing.T) {
	s := pairOf(model.Node{Underlay: addrs("192.0.2.1")}, model.Node{Underlay: addrs("192.0.2.2")}, model.L3)
	s.Networks = append(s.Networks, model.Network{Name: "six", ID: 8, VNI: 8, Subnets: []netip.Prefix{prefix("fd00:8::/64")}})
	s.Ports = append(s.Ports, model.Port{Name: "p6", Network: "six", Node: "a", MAC: model.MAC{2, 0, 0, 8, 0, 1}, IPs: addrs("fd00:8::5")})
	s = withTunnels(s).WithDefaults()
	facts := factsFor(s, "a", nil)
	facts.MTU, facts.Partial = 1200, true
	facts.Way = func(source, destination netip.Addr) ([]layout.Path, int) {
		paths, _ := onLink(source, destination)
		return paths, 1200
	}
	tables, _, err := compile(s, "a", facts, &IDs{})
	must.Succeed(t, err)
	if len(tables.Refused) != 1 || tables.Refused[0].Network != "six" {
		t.Errorf("refused networks: %v, want only \"six\"", tables.Refused)
	}
	for _, v := range tables.Vifs {
		if tables.Ports[v.ID] == "p6" && v.MTU != leastMTU6 || tables.Ports[v.ID] != "p6" && v.MTU >= 1200 {
			t.Errorf("port %s has MTU %d; want %d for p6, below 1200 for the others", tables.Ports[v.ID], v.MTU, leastMTU6)
		}
	}
	s.Networks, s.Ports = s.Networks[1:], s.Ports[2:]
	if _, _, err := compile(s, "a", facts, &IDs{}); err == nil || !strings.Contains(err.Error(), "IPv6 needs 1280") {
		t.Errorf("with network \"six\" alone: error %v, want \"IPv6 needs 1280\"", err)
	}
}
