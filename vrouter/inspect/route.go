package inspect

import (
	"net/netip"
	"strconv"
)

// RouteTable shows routes as `rt --dump` does, with the names of their nexthops.
func RouteTable(rows []Route, nexthops []Nexthop) Table {
	names := nexthopNames(nexthops)
	t := Table{
		Empty: "no routes",
		Columns: []Column{
			{Name: "Vrf", Right: true},
			{Name: "Network", Least: 8, Leave: 3},
			{Name: "Destination"},
			{Name: "Flags", Leave: 4},
			{Name: "Label", Right: true},
			{Name: "Nexthop", Right: true},
			{Name: "Stitched MAC", Leave: 2},
			{Name: "Leads to", Least: 10, Leave: 1},
		},
	}
	for _, r := range rows {
		t.Add(number(r.VRF), orNone(r.Network), r.Destination.String(), list(r.Flags), numberOrNone(r.Label),
			number(r.Nexthop), mac(r.StitchedMAC), orNone(names[r.Nexthop]))
	}
	return t
}

// LongestMatch returns the route of an address in a VRF; false: none.
func LongestMatch(rows []Route, vrf uint32, to netip.Addr) (Route, bool) {
	var best Route
	found := false
	for _, r := range rows {
		if r.VRF == vrf && r.Destination.Contains(to) && (!found || r.Destination.Bits() > best.Destination.Bits()) {
			best, found = r, true
		}
	}
	return best, found
}

// BridgeTable shows bridge entries as `rt --dump --family bridge` does.
func BridgeTable(rows []Bridge, nexthops []Nexthop) Table {
	names := nexthopNames(nexthops)
	t := Table{
		Empty: "no bridge entries",
		Columns: []Column{
			{Name: "Vrf", Right: true},
			{Name: "Network", Least: 8, Leave: 2},
			{Name: "Dest MAC"},
			{Name: "Label/VNI", Right: true},
			{Name: "Nexthop", Right: true},
			{Name: "Leads to", Least: 10, Leave: 1},
		},
	}
	for _, b := range rows {
		t.Add(number(b.VRF), orNone(b.Network), b.MAC.String(), numberOrNone(b.Label), number(b.Nexthop), orNone(names[b.Nexthop]))
	}
	return t
}

// LabelTable shows the ILM as `mpls --dump` does.
func LabelTable(rows []Target, nexthops []Nexthop) Table {
	return targets("Label", "no labels", rows, nexthops)
}

// VNITable shows VNIs as `vxlan --dump` does.
func VNITable(rows []Target, nexthops []Nexthop) Table {
	return targets("VNID", "no VNIs", rows, nexthops)
}

func targets(id, empty string, rows []Target, nexthops []Nexthop) Table {
	names := nexthopNames(nexthops)
	t := Table{
		Empty: empty,
		Columns: []Column{
			{Name: id, Right: true},
			{Name: "Payload"},
			{Name: "NextHop", Right: true},
			{Name: "Leads to", Least: 10, Leave: 1},
		},
	}
	for _, r := range rows {
		t.Add(strconv.FormatUint(uint64(r.ID), 10), r.Payload, number(r.Nexthop), orNone(names[r.Nexthop]))
	}
	return t
}
