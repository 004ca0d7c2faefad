package inspect

import (
	"net/netip"

	"windtunnel/vrouter/service"
)

// VifTable shows vifs as `vif --list` does.
func VifTable(rows []Vif) Table {
	t := Table{
		Empty: "no vifs",
		Columns: []Column{
			{Name: "Vif", Right: true},
			{Name: "Device"},
			{Name: "Type", Leave: 6},
			{Name: "Port", Least: 8},
			{Name: "Network", Least: 8},
			{Name: "Vrf", Right: true, Leave: 4},
			{Name: "Nexthop", Right: true, Leave: 7},
			{Name: "MAC", Leave: 1},
			{Name: "MTU", Right: true, Leave: 3},
			{Name: "Flags", Least: 6, Leave: 8},
			{Name: "Mode", Leave: 5},
			{Name: "RX packets", Right: true},
			{Name: "RX bytes", Right: true, Leave: 9},
			{Name: "TX packets", Right: true},
			{Name: "TX bytes", Right: true, Leave: 9},
			{Name: "Drops", Right: true, Leave: 2},
		},
	}
	for _, v := range rows {
		t.Add(number(v.ID), orNone(v.Device), v.Type, orNone(v.Port), orNone(v.Network), numberOrNone(v.VRF),
			numberOrNone(v.Nexthop), mac(v.MAC), numberOrNone(v.MTU), list(v.Flags), orNone(v.Mode),
			number(v.RxPackets), number(v.RxBytes), number(v.TxPackets), number(v.TxBytes), number(v.Drops))
	}
	return t
}

// VifFields returns all fields of one vif.
func VifFields(v Vif) Fields {
	fields := VifTable([]Vif{v}).Fields(0)
	fields.Add("Ifindex", numberOrNone(v.Ifindex))
	if len(v.Sources) > 0 {
		fields.Add("Sources", prefixes(v.Sources))
	}
	return fields
}

// ServiceTable shows the services that the node's workloads reach.
func ServiceTable(rows []service.Service) Table {
	t := Table{
		Empty: "no services",
		Columns: []Column{
			{Name: "Service", Least: 8, Leave: 2},
			{Name: "Proto"},
			{Name: "Address"},
			{Name: "Affinity", Right: true, Leave: 1},
			{Name: "Backends", Least: 16},
		},
	}
	for _, s := range rows {
		affinity, backends := none, []string{}
		if s.Affinity > 0 {
			affinity = Duration(s.Affinity)
		}
		for _, b := range s.Backends {
			backends = append(backends, b.String())
		}
		t.Add(orNone(s.Name), ProtocolName(s.Protocol), netip.AddrPortFrom(s.Address, s.Port).String(), affinity, list(backends))
	}
	return t
}
