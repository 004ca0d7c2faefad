package inspect

import (
	"flag"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"windtunnel/internal/must"
	"windtunnel/internal/screen"
	"windtunnel/vrouter/model"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares text with testdata/NAME.golden.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		must.Succeed(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want := must.Get(os.ReadFile(path))(t)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got), `go test -update` accepts it:\n%s", path, diff)
	}
}

func addr(s string) netip.Addr         { return netip.MustParseAddr(s) }
func prefix(s string) netip.Prefix     { return netip.MustParsePrefix(s) }
func addrPort(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }

var (
	webMAC = model.MAC{0x02, 0, 0, 0, 0, 1}
	dbMAC  = model.MAC{0x02, 0, 0, 0, 0, 2}
)

var sampleVifs = []Vif{
	{ID: 0, Device: "eth1", Ifindex: 3, Type: "fabric", MTU: 1500, Mode: "xdp+tcx", RxPackets: 120034, RxBytes: 98300211, TxPackets: 90021, TxBytes: 7123456, Drops: 2},
	{ID: 1, Device: "vr-5f3a91c2e0", Ifindex: 12, Type: "virtual", Port: "web1", Network: "red", VRF: 7, Nexthop: 14, MAC: webMAC, MTU: 1468,
		Flags: []string{"L2", "L3", "Policy"}, Sources: []netip.Prefix{prefix("10.0.0.3/32"), prefix("fd00::3/128"), prefix("172.16.0.0/12")},
		Mode: "tcx", RxPackets: 90021, RxBytes: 7123456, TxPackets: 120032, TxBytes: 98300011},
	{ID: 2, Device: "tap0", Ifindex: 13, Type: "virtual", Port: "Datenbank-für-Müller", Network: "网络红色", VRF: 8, Nexthop: 15, MAC: dbMAC, MTU: 1468, Flags: []string{"L3"}, Mode: "tcx"},
}

var sampleNexthops = []Nexthop{
	{ID: 0, Type: "discard", Name: "discard", References: 1},
	{ID: 14, Type: "encap", Name: "port web1", References: 2, VRF: 7, Flags: []string{"Peer"}, Device: "vr-5f3a91c2e0", Vif: 1, MTU: 1468, DMAC: webMAC},
	{ID: 20, Type: "tunnel", Name: "tunnel b mpls-udp", References: 40, Flags: []string{"DF"}, Encapsulation: model.MPLSoUDP, MTU: 1468, LearnedMTU: 1368,
		Paths: []Path{
			{Source: addr("192.0.2.1"), Destination: addr("192.0.2.2"), Gateway: addr("192.0.2.2"), Device: "eth1"},
			{Source: addr("198.51.100.1"), Destination: addr("198.51.100.2"), Gateway: addr("198.51.100.254"), Device: "eth2"},
		}},
	{ID: 21, Type: "tunnel", Name: "tunnel c vxlan", References: 1, Encapsulation: model.VXLAN, MTU: 1450, DMAC: model.RouterMAC,
		Paths: []Path{{Source: addr("2001:db8::1"), Destination: addr("2001:db8::3")}}},
	{ID: 30, Type: "composite", Name: "flood red", References: 1, VRF: 7, Flags: []string{"Multicast"}, Members: []Member{{Nexthop: 14}, {Nexthop: 20, Label: 31}, {Nexthop: 21, Label: 7}}},
	{ID: 31, Type: "vrf", Name: "vrf 网络红色", References: 1, VRF: 8},
}

var sampleRoutes = []Route{
	{VRF: 7, Network: "red", Destination: prefix("10.0.0.0/8"), Nexthop: 0, Flags: []string{"Discard"}},
	{VRF: 7, Network: "red", Destination: prefix("10.0.0.3/32"), Nexthop: 14, StitchedMAC: webMAC},
	{VRF: 7, Network: "red", Destination: prefix("10.0.0.4/32"), Label: 30, Nexthop: 20, StitchedMAC: dbMAC},
	{VRF: 8, Network: "网络红色", Destination: prefix("10.0.0.4/32"), Label: 32, Nexthop: 20},
	{VRF: 8, Network: "网络红色", Destination: prefix("2001:db8:7::4/128"), Label: 8, Nexthop: 21},
	{VRF: 8, Network: "网络红色", Destination: prefix("::/0"), Label: 1048575, Nexthop: 99},
}

var sampleBridge = []Bridge{
	{VRF: 7, Network: "red", MAC: webMAC, Nexthop: 14},
	{VRF: 7, Network: "red", MAC: dbMAC, Label: 31, Nexthop: 20},
	{VRF: 8, Network: "网络红色", MAC: dbMAC, Label: 33, Nexthop: 20},
}

var sampleLabels = []Target{{ID: 30, Payload: "ip", Nexthop: 31}, {ID: 31, Payload: "ethernet", Nexthop: 30}}

var (
	secondMember = uint32(1)
	sampleFlows  = []Flow{
		{Vif: 1, Port: "web1", Protocol: 6, Local: addrPort("10.0.0.3:80"), Remote: addrPort("10.0.0.4:51820"), Action: "forward", Rule: 2,
			State: []string{"SYN", "EST"}, Initiated: "remote", PacketsOut: 12, BytesOut: 15300, PacketsIn: 9, BytesIn: 812, Age: 61 * time.Second, Idle: 250 * time.Millisecond},
		{Vif: 1, Port: "web1", Protocol: 17, Local: addrPort("[2001:db8::3]:5353"), Remote: addrPort("[2001:db8::4]:53"), Action: "drop",
			Initiated: "local", Member: &secondMember, PacketsOut: 1, BytesOut: 80, Age: 26 * time.Hour, Idle: 26 * time.Hour},
		{Vif: 2, Port: "Datenbank-für-Müller", Protocol: 1, Local: addrPort("10.0.0.4:777"), Remote: addrPort("10.0.0.3:0"), Action: "forward",
			Initiated: "local", PacketsOut: 4, BytesOut: 336, PacketsIn: 4, BytesIn: 336, Age: 4300 * time.Millisecond, Idle: 3*time.Hour + 4*time.Minute},
	}
)

var sampleDrops = []Drop{
	{Vif: 0, Device: "eth1", Reason: "unknown_label", Meaning: "the label is not in the ILM", Packets: 2},
	{Vif: 1, Device: "vr-5f3a91c2e0", Reason: "spoofed_ip", Meaning: "source address does not belong to the vif", Packets: 1904},
	{Vif: 9, Reason: "vif_gone", Meaning: "the vif's device is gone", Packets: 18446744073709551615},
}

var sampleFallbacks = []Fallback{
	{VRF: 7, Network: "red", Reason: "fragment", Meaning: "IPv4 fragment", Packets: 1904},
	{VRF: 8, Network: "网络红色", Reason: "not_ip", Meaning: "bridged frame that is not IP", Packets: 2},
	{VRF: 9, Reason: "low_ttl", Meaning: "TTL or hop limit below 32", Packets: 18446744073709551615},
}

var sampleVRFStats = []VRFStats{
	{VRF: 7, Network: "red", ByEncapsulation: map[string]Traffic{
		"vxlan": {TxPackets: 3, TxBytes: 270}, "local": {TxPackets: 5, TxBytes: 490, RxPackets: 5, RxBytes: 490},
		"mpls-udp": {TxPackets: 1000, TxBytes: 1400000, RxPackets: 600, RxBytes: 40000}}},
	{VRF: 8, Network: "网络红色", ByEncapsulation: map[string]Traffic{"mpls-gre": {RxPackets: 1, RxBytes: 98}}},
}

// Every table at full width, at a terminal's usual 80 cells, at 40, and empty.
func TestTablesAreAsRecorded(t *testing.T) {
	for name, c := range map[string]struct{ full, empty Table }{
		"vif":      {VifTable(sampleVifs), VifTable(nil)},
		"nh":       {NexthopTable(sampleNexthops), NexthopTable(nil)},
		"rt":       {RouteTable(sampleRoutes, sampleNexthops), RouteTable(nil, nil)},
		"bridge":   {BridgeTable(sampleBridge, sampleNexthops), BridgeTable(nil, nil)},
		"mpls":     {LabelTable(sampleLabels, sampleNexthops), LabelTable(nil, nil)},
		"vxlan":    {VNITable(sampleLabels, sampleNexthops), VNITable(nil, nil)},
		"flow":     {FlowTable(sampleFlows), FlowTable(nil)},
		"drop":     {DropTable(sampleDrops), DropTable(nil)},
		"fallback": {FallbackTable(sampleFallbacks), FallbackTable(nil)},
		"vrfstats": {VRFStatsTable(sampleVRFStats), VRFStatsTable(nil)},
	} {
		t.Run(name, func(t *testing.T) {
			golden(t, name, "== whole\n"+c.full.Render(screen.Terminal{})+"\n== 80\n"+c.full.Render(screen.Terminal{Width: 80})+
				"\n== 40\n"+c.full.Render(screen.Terminal{Width: 40})+"\n== empty\n"+c.empty.Render(screen.Terminal{Width: 80}))
		})
	}
}

func TestDescriptionsAreAsRecorded(t *testing.T) {
	var b strings.Builder
	b.WriteString(VifFields(sampleVifs[1]).String() + "\n")
	for _, n := range sampleNexthops {
		b.WriteString(NexthopFields(n, sampleNexthops).String() + "\n")
	}
	b.WriteString(FlowFields(sampleFlows[1]).String())
	golden(t, "describe", b.String())
}

// If a table fits the terminal, no line is wider than the terminal. If it does
// not fit, the mandatory columns are still complete.
func TestNoLineIsWiderThanTheTerminal(t *testing.T) {
	for width := 30; width <= 260; width++ {
		for name, table := range map[string]Table{
			"vif": VifTable(sampleVifs), "nh": NexthopTable(sampleNexthops), "drop": DropTable(sampleDrops),
			"rt": RouteTable(sampleRoutes, sampleNexthops), "flow": FlowTable(sampleFlows),
		} {
			least := leastWidth(table)
			for _, line := range strings.Split(table.Render(screen.Terminal{Width: width}), "\n") {
				if w := ansi.StringWidth(line); w > max(width, least) {
					t.Fatalf("%s at width %d: a line of %d cells: %q", name, width, w, line)
				}
			}
			for i, c := range table.Columns {
				if c.Leave > 0 || c.Least > 0 {
					continue
				}
				for _, row := range table.Rows {
					if text := table.Render(screen.Terminal{Width: width}); !strings.Contains(text, row[i]) {
						t.Fatalf("%s at width %d: cell %q is not shown whole:\n%s", name, width, row[i], text)
					}
				}
			}
		}
	}
}

// leastWidth is the width of a line with only the required columns.
func leastWidth(t Table) int {
	sum := -screen.Gap
	for i, c := range t.Columns {
		if c.Leave == 0 {
			sum += screen.Gap + t.least(i, t.naturalWidths())
		}
	}
	return sum
}

func TestNamesCannotControlTheTerminal(t *testing.T) {
	text := VifTable([]Vif{{ID: 1, Device: "a\x1b[2Jb", Type: "virtual", Port: "c\nd\re", Network: "\u202ef"}}).Render(screen.Terminal{})
	if strings.ContainsAny(text, "\x1b\r\u202e") || strings.Count(text, "\n") != 2 {
		t.Errorf("control characters reached the terminal: %q", text)
	}
	if !strings.Contains(text, "a\uFFFD[2Jb") {
		t.Errorf("replaced characters are not shown as such: %q", text)
	}
}

func TestColourMarksAndHeadingsDisappearWithoutIt(t *testing.T) {
	table := VifTable(sampleVifs)
	coloured := table.Render(screen.Terminal{Colour: true})
	if !strings.HasPrefix(coloured, "\x1b[1m") {
		t.Errorf("the heading is not bold: %q", strings.SplitN(coloured, "\n", 2)[0])
	}
	must.Equal(t, table.Render(screen.Terminal{}), ansi.Strip(coloured))
}

func TestTraceTextIsAsRecorded(t *testing.T) {
	trace := Trace{
		Packet: "10.0.0.3:40000 → 10.0.0.4:80 tcp SYN, 60 bytes",
		Steps: []Step{
			{What: "vif", Key: "web1", Result: "vif 1, vrf 7"},
			{What: "host route", Key: "vrf 7 10.0.0.4", Result: "nexthop 20, label 30"},
			{What: "policy"},
		},
		Verdict: "forwarded to node b by mpls-udp, label 30",
		Leaves:  []string{"leaves by eth1, outer addresses 192.0.2.1 → 192.0.2.2"},
	}
	dropped := Trace{Packet: "10.0.0.3 → 10.9.9.9 icmp echo, 28 bytes", Verdict: "dropped: no_route: no route to the destination", Dropped: true}
	golden(t, "trace", trace.Text(screen.Terminal{Width: 60})+"\n"+dropped.Text(screen.Terminal{}))
	if text := dropped.Text(screen.Terminal{Colour: true}); !strings.Contains(text, "\x1b[31mdropped") {
		t.Errorf("a drop is not red: %q", text)
	}
}
