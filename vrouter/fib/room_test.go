package fib

import (
	"net/netip"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
)

// The headers of RFC 4023, 7510 and 7348, from the outer IP header to the inner.
func TestOverheadIsTheHeadersBytes(t *testing.T) {
	for _, c := range []struct {
		e            model.Encapsulation
		v6, ethernet bool
		want         int
	}{
		{model.MPLSoGRE, false, false, 20 + 4 + 4}, {model.MPLSoGRE, true, false, 40 + 4 + 4}, {model.MPLSoGRE, false, true, 20 + 4 + 4 + 14},
		{model.MPLSoUDP, false, false, 20 + 8 + 4}, {model.MPLSoUDP, true, false, 40 + 8 + 4}, {model.MPLSoUDP, true, true, 40 + 8 + 4 + 14},
		{model.VXLAN, false, false, 20 + 8 + 8 + 14}, {model.VXLAN, false, true, 20 + 8 + 8 + 14}, {model.VXLAN, true, true, 40 + 8 + 8 + 14},
	} {
		if got := Overhead(c.e, c.v6, c.ethernet); got != c.want {
			t.Errorf("%s, IPv6 %v, Ethernet %v: %d bytes, want %d", c.e, c.v6, c.ethernet, got, c.want)
		}
	}
}

// three is a fleet in which a talks MPLSoUDP with b and VXLAN with c, whose
// networks have ports on a and b alone.
func three(forwarding model.Forwarding) model.State {
	s := pairOf(model.Node{Underlay: addrs("192.0.2.1")}, model.Node{Underlay: addrs("192.0.2.2")}, forwarding)
	s.Nodes = append(s.Nodes, model.Node{Name: "c", Underlay: addrs("192.0.2.3"), Encapsulations: encaps("v")})
	return s
}

func vifMTU(t *testing.T, s model.State, fabric int, way map[string]int) uint16 {
	t.Helper()
	tables, _ := compiled(t, s, func(f *Facts) {
		f.MTU = fabric
		f.Way = func(source, destination netip.Addr) ([]layout.Path, int) {
			mtu, ok := way[destination.String()]
			if !ok {
				return nil, 0
			}
			return []layout.Path{layout.PathOf(source, destination, destination, 2)}, mtu
		}
	})
	return tables.Vifs[100].MTU
}

func TestAWorkloadsMTUFitsTheSmallestPathMTUToAnyNode(t *testing.T) {
	alone := pairOf(model.Node{Underlay: addrs("192.0.2.1")}, model.Node{Underlay: addrs("192.0.2.2")}, model.L3)
	alone.Nodes = alone.Nodes[:1]
	alone.Ports = alone.Ports[:1]
	six := pairOf(model.Node{Underlay: addrs("2001:db8::1")}, model.Node{Underlay: addrs("2001:db8::2")}, model.L3)
	foreign := three(model.L3)
	foreign.Gateways = []model.Gateway{{Name: "mx", Addresses: addrs("192.0.2.9"), Encapsulation: model.MPLSoGRE, Networks: []model.GatewayNetwork{{Network: "red", Label: 100}}}}
	for _, c := range []struct {
		what   string
		state  model.State
		fabric int
		way    map[string]int
		want   uint16
	}{
		{"no other node: the largest headers it offers", alone, 1500, nil, 1500 - 50},
		{"one that has no port yet counts", three(model.L3), 1500, map[string]int{"192.0.2.2": 1500}, 1500 - 50},
		{"a way that is narrower than the fabric", three(model.L3), 1500, map[string]int{"192.0.2.2": 1400}, 1400 - 32},
		{"a way that is down has the fabric's", three(model.L3), 1500, nil, 1500 - 50},
		{"Ethernet payload", three(model.L2), 1500, map[string]int{"192.0.2.2": 1450}, 1450 - 46},
		{"an IPv6 underlay", six, 1500, map[string]int{"2001:db8::2": 1500}, 1500 - 52},
		{"jumbo frames", six, 9000, map[string]int{"2001:db8::2": 9000}, 9000 - 52},
		{"a gateway far away", foreign, 1500, map[string]int{"192.0.2.2": 1500, "192.0.2.9": 1300}, 1300 - 28},
		{"the loopback device, which is too large for IP", six, 65536, map[string]int{"2001:db8::2": 65536}, 65484},
	} {
		if got := vifMTU(t, c.state, c.fabric, c.way); got != c.want {
			t.Errorf("%s: %d, want %d", c.what, got, c.want)
		}
	}
}

func TestAnUnderlayTooNarrowForIPIsRefused(t *testing.T) {
	four, six := three(model.L3), three(model.L3)
	six.Networks[0].Subnets = append(six.Networks[0].Subnets, prefix("fd00:1::/64"))
	lone := pairOf(model.Node{Underlay: addrs("192.0.2.1")}, model.Node{}, model.L3)
	lone.Nodes, lone.Ports = lone.Nodes[:1], lone.Ports[:1]
	far := three(model.L3)
	far.Nodes = far.Nodes[:2]
	far.Gateways = []model.Gateway{{Name: "mx", Addresses: addrs("192.0.2.9"), Encapsulation: model.MPLSoGRE, Networks: []model.GatewayNetwork{{Network: "red", Label: 100}}}}
	for _, c := range []struct {
		what  string
		state model.State
		mtu   int
		want  string
	}{
		{"IPv4", four, 625, `network "red": the underlay MTU of 625 is too small: after the headers of vxlan to node "c", 575 bytes remain for inner packets, but IPv4 needs 576; raise the underlay's MTU to 626`},
		{"IPv6", six, 1300, `network "red": the underlay MTU of 1300 is too small: after the headers of vxlan to node "c", 1250 bytes remain for inner packets, but IPv6 needs 1280; raise the underlay's MTU to 1330`},
		{"a gateway", far, 600, `network "red": the underlay MTU of 600 is too small: after the headers of mpls-udp to node "b", 568 bytes remain for inner packets, but IPv4 needs 576; raise the underlay's MTU to 608`},
		{"no other node", lone, 600, `network "red": the underlay MTU of 600 is too small: after the longest headers of this node's encapsulations, 550 bytes remain for inner packets, but IPv4 needs 576; raise the underlay's MTU to 626`},
	} {
		s := withTunnels(c.state).WithDefaults()
		f := factsFor(s, "a", nil)
		f.MTU, f.Way = c.mtu, nil
		_, _, err := compile(s, "a", f, &IDs{})
		if err == nil || err.Error() != c.want {
			t.Errorf("%s:\n     %v\nwant %s", c.what, err, c.want)
		}
		f.MTU += 32
		if c.what == "IPv4" {
			if _, _, err := compile(s, "a", f, &IDs{}); err != nil {
				t.Errorf("with 32 bytes more: %v", err)
			}
		}
	}
}

func TestTheMTUOfWorkloadsFollowsFromTheFactsOfTheirNode(t *testing.T) {
	four, six := model.Node{Underlay: addrs("192.0.2.1", "2001:db8::1"), Encapsulations: encaps("u g")}, model.Node{Underlay: addrs("2001:db8::1"), Encapsulations: encaps("v")}
	must.Equal(t, 1468, VifMTU(1500, four, model.Network{Forwarding: model.L3}))
	must.Equal(t, 1430, VifMTU(1500, six, model.Network{Forwarding: model.L2}))
}
