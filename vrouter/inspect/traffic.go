package inspect

import (
	"maps"
	"slices"
)

// VRFStatsTable shows the traffic of each network by encapsulation. TX is sent by
// this node's workloads, RX is delivered to them. It omits encapsulations without
// packets; a network without packets has one line of zeros.
func VRFStatsTable(rows []VRFStats) Table {
	t := Table{
		Empty: "no network has carried a packet yet",
		Columns: []Column{
			{Name: "Vrf", Right: true},
			{Name: "Network", Least: 8},
			{Name: "Encapsulation"},
			{Name: "TX packets", Right: true},
			{Name: "TX bytes", Right: true, Leave: 1},
			{Name: "RX packets", Right: true},
			{Name: "RX bytes", Right: true, Leave: 1},
		},
	}
	for _, r := range rows {
		used := r.used()
		if len(used) == 0 {
			t.Add(number(r.VRF), orNone(r.Network), none, "0", "0", "0", "0")
		}
		for _, encapsulation := range used {
			x := r.ByEncapsulation[encapsulation]
			t.Add(number(r.VRF), orNone(r.Network), encapsulation, number(x.TxPackets), number(x.TxBytes),
				number(x.RxPackets), number(x.RxBytes))
		}
	}
	return t
}

// used returns the encapsulations that have carried packets since the tables were
// created, sorted.
func (r VRFStats) used() []string {
	var names []string
	for _, e := range slices.Sorted(maps.Keys(r.ByEncapsulation)) {
		if r.ByEncapsulation[e] != (Traffic{}) {
			names = append(names, e)
		}
	}
	return names
}

// FallbackTable shows the packets that direct cannot carry, with a row per network and reason.
func FallbackTable(rows []Fallback) Table {
	t := Table{
		Empty: "direct has carried all packets of nodes that use it",
		Columns: []Column{
			{Name: "Vrf", Right: true},
			{Name: "Network", Least: 8},
			{Name: "Reason"},
			{Name: "Packets", Right: true},
			{Name: "Meaning", Least: 12, Leave: 1},
		},
	}
	for _, f := range rows {
		t.Add(number(f.VRF), orNone(f.Network), f.Reason, number(f.Packets), f.Meaning)
	}
	return t
}
