package fib

import (
	"testing"

	"windtunnel/internal/must"
	"windtunnel/vrouter/model"
)

// Each object that is not in force has one problem with its kind and its name.
func TestAProblemNamesItsObject(t *testing.T) {
	s := wide(model.Via{Port: "pa"}, model.Via{Gateway: "gw"}).WithDefaults()
	s.Gateways = []model.Gateway{{Name: "gw", Addresses: addrs("2001:db8::9"), Encapsulation: model.MPLSoGRE, Networks: []model.GatewayNetwork{{Network: "red", Label: 20}}}}
	for i := range s.Nodes {
		if s.Nodes[i].Name == "b" {
			s.Nodes[i].Underlay = addrs("2001:db8::2")
		}
	}
	c := must.Get(Compile(s.Slice("a"), "a", factsFor(s, "a", map[string]bool{"pa": true}), &IDs{}, nil))(t)
	want := []Problem{
		{"tunnel", "b", `node "b" has no underlay address of this node's families: its ports cannot be reached`},
		{"tunnel", "gateway gw", `gateway "gw" has no underlay address of this node's families: it cannot be reached`},
		{"route", "red 10.9.0.0/16", `route 10.9.0.0/16 of network "red" has no reachable next hop: its packets are dropped`},
	}
	must.Equal(t, want, c.Warnings)
}
