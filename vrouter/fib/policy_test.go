package fib

import (
	"net/netip"
	"reflect"
	"testing"

	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
)

func TestAPortsRulesComeBeforeThoseOfItsNetwork(t *testing.T) {
	s := pairOf(model.Node{Underlay: addrs("192.0.2.1")}, model.Node{Underlay: addrs("192.0.2.2")}, model.L3)
	s.Policies = []model.Policy{
		{Name: "open", Rules: []model.Rule{{Direction: model.Egress, Action: model.Allow, Protocol: "udp", Ports: "53", Log: true}}},
		{Name: "closed", Rules: []model.Rule{{Direction: model.Egress, Action: model.Deny, Remote: prefix("10.0.0.0/8")}, {Direction: model.Egress, Action: model.Allow, Protocol: "47"}}},
		{Name: "in", Rules: []model.Rule{{Direction: model.Ingress, Action: model.Allow, Protocol: "TCP", Ports: "8000-8080"}}},
		{Name: "none"},
	}
	open := layout.Rule{Flags: layout.RuleEgress | layout.RuleAllow | layout.RuleLog, Protocol: 17, FirstPort: 53, LastPort: 53}
	deny := layout.Rule{Flags: layout.RuleEgress, LastPort: 65535}.With(prefix("10.0.0.0/8"))
	gre := layout.Rule{Flags: layout.RuleEgress | layout.RuleAllow, Protocol: 47, LastPort: 65535}
	in := layout.Rule{Flags: layout.RuleAllow, Protocol: 6, FirstPort: 8000, LastPort: 8080}
	for _, c := range []struct {
		port, network []string
		want          Policy
	}{
		{[]string{"open"}, []string{"closed"}, Policy{AllowIn: true, Rules: []layout.Rule{open, deny, gre}}},
		{[]string{"closed", "open"}, nil, Policy{AllowIn: true, Rules: []layout.Rule{deny, gre, open}}},
		{nil, []string{"in"}, Policy{AllowOut: true, Rules: []layout.Rule{in}}},
		{[]string{"in"}, []string{"open"}, Policy{Rules: []layout.Rule{in, open}}},
		{nil, nil, Policy{}},
		{[]string{"none"}, []string{"none"}, Policy{}},
	} {
		s.Ports[0].Policies, s.Networks[0].Policies = c.port, c.network
		tables, _ := compiled(t, s, nil)
		v := tables.Vifs[100]
		if got := tables.Policies[v.ID]; !reflect.DeepEqual(got, c.want) || (v.Flags&layout.VifPolicy != 0) != (len(c.want.Rules) > 0) {
			t.Errorf("port %v, network %v: %+v, want %+v; the vif has flags %x", c.port, c.network, got, c.want, v.Flags)
		}
	}
	s.Settings.FlowExport.Collector = model.Collector{AddrPort: netip.MustParseAddrPort("192.0.2.9:4739")}
	for policy, open := range map[string]bool{"none": true, "in": false} {
		s.Ports[0].Policies, s.Networks[0].Policies = []string{policy}, nil
		tables, _ := compiled(t, s, nil)
		if v := tables.Vifs[100]; v.Flags&layout.VifPolicy == 0 || (v.Flags&layout.VifOpen != 0) != open {
			t.Errorf("with an export of flows and policy %s, the vif has flags %x", policy, v.Flags)
		}
	}
	s.Settings.FlowExport = model.FlowExport{}
	s.Ports[0].Attach = model.Attachment{Host: true}
	for _, c := range []struct {
		port []string
		want Policy
	}{
		{nil, Policy{AllowOut: true, Rules: []layout.Rule{{LastPort: 65535}, in}}},
		{[]string{"in"}, Policy{AllowOut: true, Rules: []layout.Rule{in, in}}},
	} {
		s.Ports[0].Policies, s.Networks[0].Policies = c.port, []string{"in"}
		tables, _ := compiled(t, s, nil)
		if got := tables.Policies[tables.Vifs[100].ID]; !reflect.DeepEqual(got, c.want) {
			t.Errorf("the node's own port with policies %v: %+v, want %+v", c.port, got, c.want)
		}
	}
}

func TestAPortMaySendFromItsAddressesAndAllowedPrefixes(t *testing.T) {
	s := pairOf(model.Node{Underlay: addrs("192.0.2.1")}, model.Node{Underlay: addrs("192.0.2.2")}, model.L2L3)
	s.Networks[0].Subnets = append(s.Networks[0].Subnets, prefix("10.2.0.0/24"), prefix("fd00:1::/64"))
	p := &s.Ports[0]
	p.IPs = addrs("fd00:1::5", "10.2.0.5")
	p.AllowSources = []netip.Prefix{prefix("fd99::/32"), prefix("198.51.100.0/24")}
	tables, _ := compiled(t, s, nil)
	want := []netip.Prefix{prefix("10.2.0.5/32"), prefix("198.51.100.0/24"), prefix("fd00:1::5/128"), prefix("fd99::/32")}
	if v := tables.Vifs[100]; !reflect.DeepEqual(v.Sources(), want) || v.Gateway4 != layout.Network4(addrs("10.2.0.1")[0]) || v.Gateway6 != layout.AddressOf(addrs("fd00:1::1")[0]) {
		t.Errorf("sources %v, want %v; gateways %x and %x, want those of its own subnets", v.Sources(), want, v.Gateway4, v.Gateway6)
	}
	s.Networks[0].Forwarding, p.IPs, p.AllowSources = model.L2, nil, nil
	tables, _ = compiled(t, s, nil)
	want = []netip.Prefix{prefix("0.0.0.0/0"), prefix("::/0")}
	if v := tables.Vifs[100]; !reflect.DeepEqual(v.Sources(), want) || v.Gateway4 != 0 {
		t.Errorf("without addresses in a network that bridges: sources %v, gateway %x; want %v and none", v.Sources(), v.Gateway4, want)
	}
}
