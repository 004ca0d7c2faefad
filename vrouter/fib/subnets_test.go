package fib

import (
	"testing"

	"windtunnel/vrouter/model"
)

// Packets to unused addresses of a subnet are discarded if there is a route with a shorter
// prefix. Routes to ports, static routes and the router's address in the subnet stay.
func TestUnusedAddressesOfASubnetAreDiscarded(t *testing.T) {
	s := wide(model.Via{Port: "pb"})
	subnet := s.Networks[0].Subnets[0]
	tables, _ := compiled(t, s, nil)
	if _, has := tables.Routes[RouteKey{7, subnet}]; has {
		t.Error("without a shorter route there is a route to the subnet")
	}
	s.Routes = append(s.Routes,
		model.Route{Network: "red", Prefix: prefix("0.0.0.0/0"), Via: []model.Via{{Gateway: "mx"}}},
		model.Route{Network: "red", Prefix: prefix("10.1.0.128/25"), Via: []model.Via{{Gateway: "tor"}}},
	)
	tables, warnings := compiled(t, s, nil)
	w := world{t: t, tables: map[string]Tables{"a": tables}}
	for text, want := range map[string]bool{
		"10.1.0.77": true, "10.1.0.255": false, "10.1.0.4": false, "10.1.0.1": false, "10.9.1.1": false, "192.0.2.77": false,
	} {
		if r, has := w.lookup("a", 7, addrs(text)[0]); !has || (r.Nexthop == 0) != want {
			t.Errorf("%s: route %+v, found %v; want it to discard: %v", text, r, has, want)
		}
	}
	if len(warnings) > 0 {
		t.Errorf("warnings %q", warnings)
	}

	s.Routes = append(s.Routes, model.Route{Network: "red", Prefix: subnet, Via: []model.Via{{Gateway: "mx"}}})
	tables, _ = compiled(t, s, nil)
	if r := tables.Routes[RouteKey{7, subnet}]; r.Nexthop == 0 {
		t.Errorf("a static route to the subnet discards: %+v", r)
	}
}
