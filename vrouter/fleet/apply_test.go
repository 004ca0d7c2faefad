package fleet

import (
	stdcmp "cmp"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"windtunnel/internal/must"
	"windtunnel/vrouter/model"
	"windtunnel/vrouter/model/modeltest"
)

// Apply turns any state into any other.
func TestApplyReplacesTheState(t *testing.T) {
	f := open(t)
	r := rand.New(rand.NewPCG(1, 2))
	s := modeltest.Random(r, 12)
	for i := range 60 {
		if i%10 == 9 {
			s = modeltest.Random(r, 12)
		} else {
			s = modeltest.Mutate(r, s)
		}
		apply(t, f, s)
		if diff := cmp.Diff(inOrder(s), inOrder(state(t, f)), cmpopts.EquateEmpty(), cmpopts.EquateComparable(netip.Addr{}, netip.AddrPort{}, netip.Prefix{})); diff != "" {
			t.Fatalf("state %d, wanted (-) and is (+):\n%s", i, diff)
		}
	}
}

// inOrder is a state with its defaults, sorted by name.
func inOrder(s model.State) model.State {
	s = s.WithDefaults()
	s.Routes, s.Policies = slices.Clone(s.Routes), slices.Clone(s.Policies)
	slices.SortFunc(s.Nodes, func(a, b model.Node) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(s.Networks, func(a, b model.Network) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(s.Ports, func(a, b model.Port) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(s.Gateways, func(a, b model.Gateway) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(s.Policies, func(a, b model.Policy) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(s.Routes, func(a, b model.Route) int {
		return stdcmp.Or(strings.Compare(a.Network, b.Network), a.Prefix.Compare(b.Prefix))
	})
	return s
}

func TestApplyKeepsPortsOfOtherOrigins(t *testing.T) {
	f := open(t)
	s := small()
	s.Ports = []model.Port{{Name: "p", Network: "red", Node: "a", MAC: model.MAC{2, 0, 0, 0, 0, 1}, IPs: []netip.Addr{netip.MustParseAddr("10.1.0.9")}}}
	apply(t, f, s)
	add(t, f, port("x", "10.1.0.10"))
	apply(t, f, small())
	if got := state(t, f); len(got.Ports) != 1 || got.Ports[0].Name != "x" {
		t.Errorf("the ports are %+v, want x alone", got.Ports)
	}
	for want, change := range map[string]func(*model.State){
		"`vrouter port add` created a different port": func(s *model.State) { s.Ports[0].Name = "x" },
		`10.1.0.10 is already used by port`:           func(s *model.State) { s.Ports[0].IPs = []netip.Addr{netip.MustParseAddr("10.1.0.10")} },
		`there is no network "red"`:                   func(s *model.State) { s.Networks, s.Ports = nil, nil },
	} {
		next := small()
		next.Ports = append([]model.Port(nil), s.Ports...)
		change(&next)
		if err := f.Apply(ctx(t), next); !IsWhy(err, Exists) || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v", want, err)
		}
	}
	// Apply of a document that equals the state must change nothing.
	s.Ports = state(t, f).Ports
	apply(t, f, s)
	if got := state(t, f).Ports[0]; !got.Equal(s.Ports[0]) || got.Origin != model.Added {
		t.Errorf("the port is %+v, want %+v", got, s.Ports[0])
	}
	s.Ports[0].Origin = "cn"
	if err := f.Apply(ctx(t), s); !IsWhy(err, Invalid) || !strings.Contains(err.Error(), `origin: "cn"`) {
		t.Errorf("an unknown origin: %v", err)
	}
	// If a document has a port without an origin, the port belongs to the document.
	s.Ports[0].Origin, s.Ports[0].Owner = model.Applied, ""
	apply(t, f, s)
	if got := state(t, f).Ports[0]; got.Origin != model.Applied {
		t.Errorf("it is still %v's", got.Origin)
	}
}

// A document of many commits.
func TestALargeStateIsApplied(t *testing.T) {
	f := open(t)
	s := small()
	s.Networks[0].Subnets = prefixes("10.1.0.0/16")
	a := netip.MustParseAddr("10.1.0.2")
	for i := range 1000 {
		s.Ports = append(s.Ports, model.Port{Name: fmt.Sprint("p", i), Network: "red", Node: "b", MAC: model.MAC{2, 0, 0, 0, byte(i >> 8), byte(i)}, IPs: []netip.Addr{a}})
		a = a.Next()
	}
	apply(t, f, s)
	must.Equal(t, 1000, len(state(t, f).Ports))
	s.Ports = s.Ports[500:]
	apply(t, f, s)
	must.Equal(t, 500, len(state(t, f).Ports))
}
