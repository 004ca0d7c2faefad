package reconcile

import (
	"net/netip"
	"slices"
	"testing"

	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/model"
)

func TestPortsThatAreLeavingAreNotWanted(t *testing.T) {
	s := model.State{Ports: []model.Port{{Name: "p", Node: "a", Attach: model.Attachment{Netns: "n"}}}}
	other := s.Ports[0]
	other.Name, other.MAC, other.IPs, other.Node = "q", model.MAC{2, 0, 0, 0, 0, 9}, []netip.Addr{other.IPs[0].Next()}, "b"
	s.Ports = append(s.Ports, other)
	s.Nodes = append(s.Nodes, model.Node{Name: "b", Underlay: []netip.Addr{netip.MustParseAddr("192.0.2.2")}})
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
