package bgp

import (
	"net/netip"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/vrouter/model"
)

// Routers know a workload by its floating address of a family, if it has one, and otherwise by its address in
// the subnets. The addresses of the node in the pool are not announced.
func TestFloatingAddressesAreAnnounced(t *testing.T) {
	s := testSite()
	red := s.Networks[0]
	red.Export = []model.RouteTarget{target("64512:1")}
	addresses := func(texts ...string) (all []netip.Addr) {
		for _, text := range texts {
			all = append(all, netip.MustParseAddr(text))
		}
		return all
	}
	paths := Export(s.Node, []model.Network{red}, []model.Port{
		{Name: "x", Network: "red", IPs: addresses("10.1.0.2", "fd00:1::2"), Floating: addresses("203.0.113.9")},
		{Name: "y", Network: "red", IPs: addresses("10.1.0.3", "fd00:1::3"), Floating: addresses("2001:db8::9", "203.0.113.10")},
		{Name: "host", Network: "red", IPs: addresses("10.1.0.4"), Floating: addresses("203.0.113.1"), Attach: model.Attachment{Host: true}},
	}, nil)
	got := map[string][]string{}
	for _, p := range paths {
		got[string(p.Family)] = append(got[string(p.Family)], p.Destination())
		if want := map[Kind]uint32{VPN: red.Label(), Prefix: red.VNI}[p.Kind]; p.Label != want || p.NextHop != s.Node.Underlay[0] {
			t.Errorf("the path %+v has label %d; want label %d and next hop %s", p, p.Label, want, s.Node.Underlay[0])
		}
	}
	v4, v6 := []string{"203.0.113.9/32", "203.0.113.10/32", "10.1.0.4/32"}, []string{"fd00:1::2/128", "2001:db8::9/128"}
	want := map[string][]string{"vpnv4": v4, "vpnv6": v6, "evpn": {v4[0], v6[0], v4[1], v6[1], v4[2]}}
	must.Equal(t, want, got)
}
