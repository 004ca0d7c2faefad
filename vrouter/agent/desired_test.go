package agent

import (
	"slices"
	"testing"

	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/model"
)

func TestPortsThatAreLeavingAreNotWanted(t *testing.T) {
	s := smallState()
	other := s.Ports[0]
	other.Name, other.Node = "q", "b"
	s.Ports = append(s.Ports, other)
	d := newDesired("a", s, &fib.IDs{})
	if own := d.ports; len(own) != 1 || own[0].Name != "p" || own[0].Attach.Interface != model.DefaultInterface {
		t.Errorf("the node's ports: %+v", own)
	}
	same := newDesired("a", s, &fib.IDs{})
	if !same.equal(d) {
		t.Error("the same state is another")
	}
	less := newDesired("a", s, &fib.IDs{}, "p")
	if less.equal(d) || len(less.ports) != 0 || !slices.ContainsFunc(less.state.Ports, func(p model.Port) bool { return p.Name == "q" }) {
		t.Errorf("without p: %+v", less.state.Ports)
	}
}
