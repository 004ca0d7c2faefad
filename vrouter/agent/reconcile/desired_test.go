package reconcile

import (
	"net/netip"
	"slices"
	"testing"

	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/model"
)

func TestPortsThatAreLeavingAreNotWanted(t *testing.T) {
	s := model.State{
		Nodes:    []model.Node{{Name: "a", Underlay: []netip.Addr{netip.MustParseAddr("192.0.2.1")}}, {Name: "b", Underlay: []netip.Addr{netip.MustParseAddr("192.0.2.2")}}},
		Networks: []model.Network{{Name: "red", ID: 1, Subnets: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24")}}},
		Ports: []model.Port{
			{Name: "p", Network: "red", Node: "a", MAC: model.MAC{2, 0, 0, 0, 0, 1}, IPs: []netip.Addr{netip.MustParseAddr("10.0.0.2")}, Attach: model.Attachment{Netns: "n"}},
			{Name: "q", Network: "red", Node: "b", MAC: model.MAC{2, 0, 0, 0, 0, 2}, IPs: []netip.Addr{netip.MustParseAddr("10.0.0.3")}, Attach: model.Attachment{Netns: "n"}},
		},
	}
	d := NewDesired("a", s, &fib.IDs{})
	if own := d.Ports; len(own) != 1 || own[0].Name != "p" || own[0].Attach.Interface != model.DefaultInterface {
		t.Errorf("the node's ports: %+v", own)
	}
	same := NewDesired("a", s, &fib.IDs{})
	if !same.Equal(d) {
		t.Error("the same state is another")
	}
	less := NewDesired("a", s, &fib.IDs{}, "p")
	if less.Equal(d) || len(less.Ports) != 0 || !slices.ContainsFunc(less.State.Ports, func(p model.Port) bool { return p.Name == "q" }) {
		t.Errorf("without p: %+v", less.State.Ports)
	}
}
