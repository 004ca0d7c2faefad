package model

import (
	"net/netip"
	"testing"

	"windtunnel/internal/must"
)

func bare() State {
	return State{
		Settings: Settings{Locators: netip.MustParsePrefix("fd00:77::/32")},
		Nodes:    []Node{{Name: "a", Underlay: addrs("192.0.2.1")}, {Name: "b", Encapsulations: []Encapsulation{VXLAN}}},
		Networks: []Network{{Name: "red", ID: 7}, {Name: "lan", ID: 8, VNI: 5000, Forwarding: L2}},
		Ports:    []Port{{Name: "p", Attach: Attachment{Netns: "one"}}, {Name: "q", Attach: Attachment{Device: "tap0"}}, {Name: "r", Attach: Attachment{Netns: "two", Interface: "net1"}}},
		Gateways: []Gateway{
			{Name: "v", Encapsulation: VXLAN, Networks: []GatewayNetwork{{Network: "red"}, {Network: "lan"}, {Network: "lan", VNI: 9}}},
			{Name: "m", Encapsulation: MPLSoGRE, Networks: []GatewayNetwork{{Network: "red", Label: 100}}},
		},
	}
}

func TestDefaultsAreFilledIn(t *testing.T) {
	want := State{
		Settings: Settings{VXLANPort: 4789, Locators: netip.MustParsePrefix("fd00:77::/32")},
		Nodes: []Node{
			{Name: "a", Underlay: addrs("192.0.2.1"), Encapsulations: []Encapsulation{"direct", "vxlan", "mpls-udp", "mpls-gre"}, Locator: netip.MustParsePrefix("fd00:77:c000:201::/64")},
			{Name: "b", Encapsulations: []Encapsulation{VXLAN}},
		},
		Networks: []Network{{Name: "red", ID: 7, VNI: 7, Forwarding: "l3"}, {Name: "lan", ID: 8, VNI: 5000, Forwarding: L2}},
		Ports:    []Port{{Name: "p", Attach: Attachment{Netns: "one", Interface: "eth0"}}, {Name: "q", Attach: Attachment{Device: "tap0"}}, {Name: "r", Attach: Attachment{Netns: "two", Interface: "net1"}}},
		Gateways: []Gateway{
			{Name: "v", Encapsulation: VXLAN, MAC: MAC{0x00, 0x00, 0x5e, 0x00, 0x01, 0x00}, Networks: []GatewayNetwork{{Network: "red", VNI: 7}, {Network: "lan", VNI: 5000}, {Network: "lan", VNI: 9}}},
			{Name: "m", Encapsulation: MPLSoGRE, Networks: []GatewayNetwork{{Network: "red", Label: 100}}},
		},
	}
	must.Equal(t, want, bare().WithDefaults(), same)
}

func TestFillingInDefaultsTwiceEqualsOnce(t *testing.T) {
	must.Equal(t, bare().WithDefaults(), bare().WithDefaults().WithDefaults(), same)
}

func TestFillingInDoesNotChangeTheGivenState(t *testing.T) {
	s := bare()
	filled := s.WithDefaults()
	filled.Nodes[0].Encapsulations[0] = "changed"
	filled.Gateways[1].Name, filled.Ports[0].Name = "changed", "changed"
	must.Equal(t, bare(), s, same)
	if DefaultEncapsulations[0] != Direct {
		t.Errorf("WithDefaults changed DefaultEncapsulations: %v", DefaultEncapsulations)
	}
}

func TestLabelsOfNetworksAreAllDifferentAndNoneIsReserved(t *testing.T) {
	seen := map[uint32]uint32{}
	for id := uint32(1); id <= MaxNetworkID; id++ {
		n := Network{ID: id}
		for _, l := range []uint32{n.Label(), n.EthernetLabel()} {
			if l < 16 || l > 1<<20-1 || seen[l] != 0 {
				t.Fatalf("network %d has label %d, which is reserved, too large, or network %d's", id, l, seen[l])
			}
			seen[l] = id
		}
	}
}

func TestSubnetsHaveAGatewayAndABroadcastAddress(t *testing.T) {
	for subnet, want := range map[string][2]string{
		"10.1.0.0/16": {"10.1.0.1", "10.1.255.255"}, "192.0.2.64/30": {"192.0.2.65", "192.0.2.67"}, "10.0.0.0/8": {"10.0.0.1", "10.255.255.255"},
		"fd00:1::/64": {"fd00:1::1", "invalid IP"},
	} {
		p := prefixes(subnet)[0]
		if got := [2]string{GatewayAddress(p).String(), BroadcastAddress(p).String()}; got != want {
			t.Errorf("%s: %v, want %v", subnet, got, want)
		}
	}
}
