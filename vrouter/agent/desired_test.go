package agent

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/model"
)

func localPort(name, mac, ip string) model.Port {
	var m model.MAC
	if err := m.UnmarshalText([]byte(mac)); err != nil {
		panic(err)
	}
	return model.Port{Name: name, Network: "red", Node: "a", MAC: m, IPs: []netip.Addr{netip.MustParseAddr(ip)}, Attach: model.Attachment{Netns: "w-" + name}}
}

func TestPortsAddedHereStayBesideANewState(t *testing.T) {
	d, err := newDesired("a", smallState(), []model.Port{localPort("z", "02:00:00:00:00:09", "10.0.0.9"), localPort("y", "02:00:00:00:00:08", "10.0.0.8")}, &fib.IDs{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range d.ports() {
		names = append(names, p.Name)
	}
	if !slices.Equal(names, []string{"p", "y", "z"}) {
		t.Errorf("ports %v", names)
	}
	if len(d.applied.Ports) != 1 || len(d.local) != 2 {
		t.Errorf("%d applied and %d local ports, want them kept apart", len(d.applied.Ports), len(d.local))
	}
	if err := d.whole.Validate(); err != nil {
		t.Error(err)
	}
}

func TestAPortThatTheStateTakesOverAsItIsIsNoLongerLocal(t *testing.T) {
	s := smallState()
	same := s.Ports[0]
	same.Attach.Interface = model.DefaultInterface // what the state leaves out
	same.Policies = []string{}
	d, err := newDesired("a", s, []model.Port{same}, &fib.IDs{})
	if err != nil {
		t.Fatal(err)
	}
	if len(d.local) != 0 || len(d.whole.Ports) != 1 {
		t.Errorf("%d local of %d ports, want 0 of 1", len(d.local), len(d.whole.Ports))
	}
}

func TestAContradictionNamesBothPortsAndTheRemedy(t *testing.T) {
	other := smallState()
	other.Networks[0].Name = "blue"
	other.Ports = nil
	for name, c := range map[string]struct {
		state model.State
		local model.Port
		want  []string
	}{
		"same name, different": {smallState(), localPort("p", "02:00:00:00:00:09", "10.0.0.9"), []string{`port "p" of the state`, "added on this node", "vrouter port delete p"}},
		"same MAC":             {smallState(), localPort("q", "02:00:00:00:00:01", "10.0.0.9"), []string{`port "p" of the state has 02:00:00:00:00:01`, `port "q"'s`}},
		"same address":         {smallState(), localPort("q", "02:00:00:00:00:09", "10.0.0.2"), []string{`port "p" of the state has 10.0.0.2`, `port "q"'s`}},
		"network gone":         {other, localPort("q", "02:00:00:00:00:09", "10.0.0.9"), []string{`port "q", added on this node, is in network "red"`, "vrouter port delete q"}},
	} {
		_, err := newDesired("a", c.state, []model.Port{c.local}, &fib.IDs{})
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error %v, want %q in it", name, err, want)
			}
		}
	}
}

func TestTheSameAddressInAnotherNetworkIsNoContradiction(t *testing.T) {
	s := smallState()
	s.Networks = append(s.Networks, model.Network{Name: "blue", ID: 2, Subnets: s.Networks[0].Subnets})
	q := localPort("q", "02:00:00:00:00:01", "10.0.0.2")
	q.Network = "blue"
	if _, err := newDesired("a", s, []model.Port{q}, &fib.IDs{}); err != nil {
		t.Error(err)
	}
}
