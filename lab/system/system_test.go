package system

import (
	"strings"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/internal/setup"
	"windtunnel/lab/program"
	"windtunnel/lab/suite"
)

func programsOf(s System) []program.Program {
	_, programs := s.Needs()
	return programs
}

func TestEverySystemIsFoundByItsOneName(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range Registry() {
		if seen[s.Name()] {
			t.Errorf("two systems are called %s", s.Name())
		}
		seen[s.Name()] = true
		found, err := ByName(s.Name())
		if err != nil || found != s {
			t.Errorf("ByName(%s) = %v, %v", s.Name(), found, err)
		}
		if s.About().Description == "" {
			t.Errorf("%s does not say what it is", s.Name())
		}
		for _, p := range programsOf(s) {
			if p.Remedy() == "" {
				t.Errorf("%s: nothing says how to get %s: add its package to %s, or set Build", s.Name(), p.Name, setup.File)
			}
		}
	}
	_, err := ByName("carrier-pigeon")
	must.Fail(t, err, "vxlan")
}

func TestTheMTULeavesRoomForTheTunnel(t *testing.T) {
	for s, want := range map[System]int{Raw{}: 1500, Bridge{}: 1500, Macvlan{}: 1500, VXLAN{}: 1450} {
		if got := MTU(s, 1500); got != want {
			t.Errorf("%s on a fabric of 1500: MTU %d, want %d", s.Name(), got, want)
		}
	}
}

// Each system was measured on a fabric of its smallest MTU.
func TestTheSmallestMTULeavesRoomForIPv6(t *testing.T) {
	least := LeastMTUs()
	for name, want := range map[string]int{"raw": 1280, "docker-overlay": 1280, "vrouter-direct": 1280, "vrouter-mpls-gre": 1308, "vrouter-mpls-udp": 1312, "vxlan": 1330, "flannel-vxlan": 1330, "weave": 1342, "vrouter-translated": 1350} {
		if least[name] != want {
			t.Errorf("%s needs an MTU of %d, want %d", name, least[name], want)
		}
	}
}

func TestUnsuitablePlacementsAndFabricsAreRefusedWithTheReason(t *testing.T) {
	one, two := suite.Fabric{Links: 1}, suite.Fabric{Links: 2}
	for _, c := range []struct {
		s   System
		p   suite.Placement
		f   suite.Fabric
		say string // empty where it is served
	}{
		{Raw{}, suite.TwoNodes, two, ""},
		{Raw{}, suite.Colocated, one, "loopback"},
		{Bridge{}, suite.Colocated, one, ""},
		{Bridge{}, suite.TwoNodes, two, "loop"},
		{Macvlan{}, suite.TwoNodes, two, "loop"},
		{VXLAN{}, suite.TwoNodes, two, ""},
		{Raw{}, suite.Gateway, one, ""},
		{Bridge{}, suite.Gateway, one, "does not support placement gateway"},
		{BridgeNAT{}, suite.Gateway, one, ""},
		{BridgeNAT{}, suite.TwoNodes, one, "set placement: gateway"},
		{BridgeNAT{}, suite.Gateway, two, "one NIC"},
	} {
		err := Supports(c.s, c.p, c.f)
		if (err == nil) != (c.say == "") || err != nil && !strings.Contains(err.Error(), c.say) {
			t.Errorf("%s %s over %d links: %v, want %q", c.s.Name(), c.p, c.f.Links, err, c.say)
		}
	}
}

func TestSomeSystemsHaveATitle(t *testing.T) {
	titles := Titles()
	if titles["bridge"] != "the bridge" || titles["vxlan"] != "kernel VXLAN" || titles["macvlan"] != "" {
		t.Errorf("the titles are %q, want those of bridge and vxlan, and none of macvlan", titles)
	}
}
