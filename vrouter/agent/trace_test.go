package agent

import (
	"net/netip"
	"testing"

	"windtunnel/vrouter/datapath"
	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
)

// The verdict names the translated addresses, and says if a packet could not be translated.
func TestTheVerdictOfATraceNamesTheTranslatedAddresses(t *testing.T) {
	v := &snapshot{names: func() *names {
		return &names{nexthops: map[uint32]string{5: "tunnel b translated", 6: "tunnel b vxlan"}}
	}, networks: map[uint32]model.Network{7: {Name: "red"}}}
	number := func(e model.Encapsulation) uint32 { return uint32(layout.Number(e)) }
	from, to := netip.MustParseAddr("fd77:0:0:1::1"), netip.MustParseAddr("fd77:0:0:2::2")
	translated := datapath.TraceStep{Kind: datapath.TraceNexthop, ID: 5, Value: uint32(layout.Tunnel), Found: true}
	fallback := datapath.TraceStep{Kind: datapath.TraceFallback, VRF: 7, ID: 6, Found: true}
	for _, c := range []struct {
		steps []datapath.TraceStep
		want  string
	}{
		{[]datapath.TraceStep{translated, {Kind: datapath.TraceEncap, ID: number(model.Translated), Value: 7}, {Kind: datapath.TraceTranslated, Address: from}, {Kind: datapath.TraceTranslated, Value: 1, Address: to}},
			"forwarded to node b by translated, network 7, from fd77:0:0:1::1 to fd77:0:0:2::2"},
		{[]datapath.TraceStep{translated, fallback, {Kind: datapath.TraceNexthop, ID: 6, Value: uint32(layout.Tunnel), Found: true}, {Kind: datapath.TraceEncap, ID: number(model.VXLAN), Value: 700}},
			"forwarded to node b by vxlan, VNI 700; the packet cannot be translated"},
	} {
		if got, dropped := verdict(v, c.steps, 7); got != c.want || dropped {
			t.Errorf("the verdict is %q (dropped: %v), want %q", got, dropped, c.want)
		}
	}
	if s := describeStep(v, fallback); s.Result != "the packet cannot be translated; fallback: nexthop 6, tunnel b vxlan" {
		t.Errorf("the step of the fallback is %+v", s)
	}
	fallback.ID, fallback.Found = 0, false
	if s := describeStep(v, fallback); s.Result != "the packet cannot be translated, and there is no fallback" {
		t.Errorf("the step without a fallback is %+v", s)
	}
}

// The verdict must name the far end of the tunnel: a node, a gateway or a BGP router.
func TestTheVerdictOfATraceNamesTheFarEnd(t *testing.T) {
	for name, want := range map[string]string{
		"tunnel b mpls-udp":                             "node b",
		"tunnel b direct ethernet":                      "node b",
		"tunnel router vxlan":                           "node router",
		"tunnel router mpls-udp ethernet":               "node router",
		"tunnel gateway mx vxlan":                       "gateway mx",
		"tunnel gateway mx mpls-gre ethernet":           "gateway mx",
		"tunnel router 192.0.2.9 mpls-udp":              "router 192.0.2.9",
		"tunnel router fd00::9 00:00:5e:00:01:00 vxlan": "router fd00::9",
	} {
		v := &snapshot{names: func() *names { return &names{nexthops: map[uint32]string{5: name}} }}
		steps := []datapath.TraceStep{{Kind: datapath.TraceNexthop, ID: 5}, {Kind: datapath.TraceEncap, ID: uint32(layout.Number(model.VXLAN)), Value: 700}}
		if got, _ := verdict(v, steps, 7); got != "forwarded to "+want+" by vxlan, VNI 700" {
			t.Errorf("with nexthop %q the verdict is %q", name, got)
		}
	}
}
