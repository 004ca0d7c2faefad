package model

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// small has a subnet of five addresses for ports, one of an IPv6 family, and
// one that fills when the first is full.
func small() State {
	return State{
		Nodes:    []Node{{Name: "a", Underlay: addrs("192.0.2.1")}},
		Networks: []Network{{Name: "red", ID: 7, Subnets: prefixes("10.1.0.0/29", "fd00:1::/64", "10.2.0.0/30")}, {Name: "lan", ID: 8, Forwarding: L2}},
	}
}

// add completes a port and puts it into the state.
func add(t *testing.T, s *State, p Port) Port {
	t.Helper()
	p.Node = "a"
	done, err := Complete(*s, p)
	if err != nil {
		t.Fatal(err)
	}
	s.Ports = append(s.Ports, done)
	if err := s.Validate(); err != nil {
		t.Fatalf("port %+v: %v", done, err)
	}
	return done
}

func TestAPortGetsTheFirstFreeAddressOfEachFamily(t *testing.T) {
	s := small()
	for i, want := range [][]netip.Addr{
		addrs("10.1.0.2", "fd00:1::2"), addrs("10.1.0.3", "fd00:1::3"), addrs("10.1.0.4", "fd00:1::4"), addrs("10.1.0.5", "fd00:1::5"),
		addrs("10.1.0.6", "fd00:1::6"), addrs("10.2.0.2", "fd00:1::7"),
	} {
		if got := add(t, &s, Port{Network: "red"}); fmt.Sprint(got.IPs) != fmt.Sprint(want) {
			t.Errorf("port %d has %v, want %v", i+1, got.IPs, want)
		}
	}
}

func TestAFullNetworkIsNamedWithItsSubnets(t *testing.T) {
	s := small()
	for range 6 {
		add(t, &s, Port{Network: "red"})
	}
	_, err := Complete(s, Port{Network: "red"})
	const want = `network "red": subnets: no IPv4 address is free in 10.1.0.0/29, 10.2.0.0/30; delete ports, or add a subnet`
	if err == nil || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
	s.Ports = append(s.Ports[:2], s.Ports[3:]...)
	if got := add(t, &s, Port{Network: "red"}).IPs[0]; got != netip.MustParseAddr("10.1.0.4") {
		t.Errorf("after port 3 is gone the next has %s, want its 10.1.0.4", got)
	}
}

func TestAddressesThatLeadElsewhereAreNotGiven(t *testing.T) {
	s := small()
	s.Routes = []Route{{Network: "red", Prefix: prefixes("10.1.0.2/32")[0], Discard: true}}
	s.Gateways = []Gateway{{
		Name: "mx", Addresses: addrs("192.0.2.9"), Encapsulation: MPLSoUDP,
		Networks: []GatewayNetwork{{Network: "red", Label: 100, Prefixes: prefixes("10.1.0.3/32", "fd00:1::2/128", "10.1.0.0/28")}},
	}}
	if got := add(t, &s, Port{Network: "red"}).IPs; fmt.Sprint(got) != "[10.1.0.4 fd00:1::3]" {
		t.Errorf("the port has %v, want 10.1.0.4 and fd00:1::3", got)
	}
}

func TestWhatAPortHasStays(t *testing.T) {
	want := Port{
		Name: "web", Network: "red", Node: "a", MAC: MAC{2, 9, 9, 9, 9, 9}, IPs: addrs("10.1.0.5"),
		Attach: Attachment{Netns: "one", Interface: "net1"}, Policies: []string{"p"},
	}
	got, err := Complete(small(), want)
	if diff := cmp.Diff(want, got, same); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestAPortOfANetworkWithoutSubnetsGetsNameAndMACAlone(t *testing.T) {
	s := small()
	first, second := add(t, &s, Port{Network: "lan"}), add(t, &s, Port{Network: "lan"})
	if first.Name != "lan-1" || second.Name != "lan-2" || len(first.IPs)+len(second.IPs) != 0 || first.MAC == second.MAC {
		t.Errorf("they are %+v and %+v, want lan-1 and lan-2 with MACs of their own and no addresses", first, second)
	}
}

func TestAPortThatComesBackHasTheMACItHad(t *testing.T) {
	s := small()
	first := add(t, &s, Port{Network: "red", Attach: Attachment{Netns: "one"}})
	s.Ports = nil
	again := add(t, &s, Port{Network: "red", Attach: Attachment{Netns: "one"}})
	if diff := cmp.Diff(first, again, same); diff != "" {
		t.Errorf("(-first +again):\n%s", diff)
	}
	if first.Name != "red-10-1-0-2" || first.MAC[0] != 0x02 || first.Attach.Interface != "eth0" {
		t.Errorf("it is %+v, want name red-10-1-0-2, a locally administered MAC, device eth0", first)
	}
}

func TestGivenMACsAndNamesAreNobodyElses(t *testing.T) {
	s := small()
	want := add(t, &s, Port{Network: "red"})
	// Another port, and a station behind a gateway, have what it would get.
	s.Ports[0].IPs, s.Ports[0].Name = addrs("10.1.0.6"), "red-10-1-0-2"
	got := add(t, &s, Port{Network: "red"})
	if got.MAC == want.MAC || got.Name != "red-10-1-0-2-2" || got.IPs[0] != want.IPs[0] {
		t.Errorf("it is %+v, beside %+v; want the same address, another MAC, and name red-10-1-0-2-2", got, want)
	}
	s.Networks[0].Forwarding = L2L3
	s.Ports = nil
	s.Gateways = []Gateway{{Name: "v", Addresses: addrs("192.0.2.9"), Encapsulation: VXLAN, Networks: []GatewayNetwork{{Network: "red", MACs: []MAC{want.MAC}}}}}
	if got := add(t, &s, Port{Network: "red"}); got.MAC == want.MAC {
		t.Errorf("it has MAC %s of a station behind the gateway", got.MAC)
	}
}

func TestAGivenNameFitsAlsoWhereTheNetworksIsLong(t *testing.T) {
	s := small()
	s.Networks[0].Name = strings.Repeat("n", 63)
	s.Networks[1].Name = strings.Repeat("l", 62) + "-"
	for range 3 {
		for _, network := range []string{s.Networks[0].Name, s.Networks[1].Name} {
			if p := add(t, &s, Port{Network: network}); len(p.Name) > 63 {
				t.Errorf("name %q has %d characters", p.Name, len(p.Name))
			}
		}
	}
}

func TestAPortOfANetworkThatIsNotThereIsRefused(t *testing.T) {
	for network, want := range map[string]string{
		"rde":   `port "web": network: there is no network "rde"; did you mean "red"?`,
		"green": `port "web": network: there is no network "green"; networks: red, lan`,
	} {
		if _, err := Complete(small(), Port{Name: "web", Network: network}); err == nil || err.Error() != want {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}
