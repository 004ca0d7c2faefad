package model

import (
	"strings"
	"testing"
)

func TestAPortIsNamedAfterItsNetworkAndAddress(t *testing.T) {
	taken := map[string]bool{"red-10-1-0-2": true, "lan-1": true}
	for want, p := range map[string]Port{
		"red-10-1-0-2-2": {Network: "red", IPs: addrs("10.1.0.2")},
		"red-10-1-0-3":   {Network: "red", IPs: addrs("10.1.0.3", "fd00:1::3")},
		"red-fd00-0001-0000-0000-0000-0000-0000-0002": {Network: "red", IPs: addrs("fd00:1::2")},
		"lan-2": {Network: "lan"},
	} {
		if got := PortName(p, func(name string) bool { return taken[name] }); got != want {
			t.Errorf("%+v is named %q, want %q", p, got, want)
		}
	}
}

func TestAPortsNameFitsAlsoWhereTheNetworksIsLong(t *testing.T) {
	free := func(string) bool { return false }
	for _, network := range []string{strings.Repeat("n", 63), strings.Repeat("l", 62) + "-"} {
		for _, p := range []Port{{Network: network}, {Network: network, IPs: addrs("10.1.0.2")}} {
			if name := PortName(p, free); len(name) > 63 || !strings.HasSuffix(name, "-1") && !strings.HasSuffix(name, "-10-1-0-2") {
				t.Errorf("name %q has %d characters", name, len(name))
			}
		}
	}
}

func TestAMACFollowsFromNetworkAndAddress(t *testing.T) {
	free := func(MAC) bool { return false }
	p := Port{Name: "one", Network: "red", IPs: addrs("10.1.0.2")}
	first := PortMAC(p, free)
	p.Name = "two"
	if again := PortMAC(p, free); again != first || first[0] != 0x02 {
		t.Errorf("%s, and %s when it comes back; want one, locally administered", first, again)
	}
	if other := PortMAC(p, func(m MAC) bool { return m == first }); other == first {
		t.Errorf("%s is another's", other)
	}
	p.Network = "blue"
	if other := PortMAC(p, free); other == first {
		t.Errorf("%s in both networks", other)
	}
}
