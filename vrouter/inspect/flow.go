package inspect

import (
	"fmt"
	"net/netip"
	"strconv"
)

// FlowTable shows flows as `flow -l` does, from the view of the workload.
func FlowTable(rows []Flow) Table {
	t := Table{
		Empty: "no flows",
		Columns: []Column{
			{Name: "Vif", Right: true},
			{Name: "Port", Least: 8, Leave: 4},
			{Name: "Proto"},
			{Name: "Local"},
			{Name: "Remote"},
			{Name: "By", Leave: 6},
			{Name: "Action"},
			{Name: "Rule", Right: true, Leave: 5},
			{Name: "State", Leave: 3},
			{Name: "ECMP", Right: true, Leave: 10},
			{Name: "Out packets", Right: true, Leave: 2},
			{Name: "Out bytes", Right: true, Leave: 8},
			{Name: "In packets", Right: true, Leave: 2},
			{Name: "In bytes", Right: true, Leave: 8},
			{Name: "Age", Right: true, Leave: 9},
			{Name: "Idle", Right: true, Leave: 7},
		},
	}
	for _, f := range rows {
		t.Add(number(f.Vif), orNone(f.Port), ProtocolName(f.Protocol), f.end(f.Local), f.end(f.Remote), f.Initiated,
			f.Action, f.rule(), list(f.State), f.member(), number(f.PacketsOut), number(f.BytesOut),
			number(f.PacketsIn), number(f.BytesIn), Duration(f.Age), Duration(f.Idle))
	}
	return t
}

// FlowFields returns all fields of one flow.
func FlowFields(f Flow) Fields { return FlowTable([]Flow{f}).Fields(0) }

// end formats one end of a flow. For ICMP only the local end has an identifier.
func (f Flow) end(a netip.AddrPort) string {
	icmp := f.Protocol == 1 || f.Protocol == 58
	switch {
	case icmp && a == f.Local && a.Port() != 0:
		return fmt.Sprintf("%s id %d", a.Addr(), a.Port())
	case a.Port() == 0:
		return a.Addr().String()
	}
	return a.String()
}

func (f Flow) rule() string {
	if f.Rule == 0 {
		return "default"
	}
	return strconv.Itoa(f.Rule)
}

func (f Flow) member() string {
	if f.Member == nil {
		return none
	}
	return number(*f.Member)
}
