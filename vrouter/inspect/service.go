package inspect

import (
	"net/netip"

	"windtunnel/vrouter/service"
)

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
