package agent

import (
	"cmp"
	"net/netip"
	"slices"

	"windtunnel/vrouter/datapath"
	"windtunnel/vrouter/inspect"
)

// flows returns the flow table, sorted by vif and addresses.
func (a *agent) flows(v *snapshot, vrf uint32) ([]inspect.Flow, error) {
	in, err := a.vifsOf(vrf)
	if err != nil {
		return nil, err
	}
	rows := []inspect.Flow{}
	err = a.reconciler.Plane().Flows(func(k datapath.FlowKey, f datapath.Flow) bool {
		if vrf == 0 || in[k.Vif] {
			rows = append(rows, flowRow(v, k, f))
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(rows, func(a, b inspect.Flow) int {
		return cmp.Or(cmp.Compare(a.Vif, b.Vif), comparePorts(a.Local, b.Local), comparePorts(a.Remote, b.Remote), cmp.Compare(a.Protocol, b.Protocol))
	})
	return rows, nil
}

func comparePorts(a, b netip.AddrPort) int { return a.Compare(b) }

func flowRow(v *snapshot, k datapath.FlowKey, f datapath.Flow) inspect.Flow {
	row := inspect.Flow{
		Vif: k.Vif, Port: v.names().vifs[k.Vif], Protocol: k.Protocol, Local: k.Local, Remote: k.Remote,
		Action: "forward", Rule: f.Rule, Initiated: "local",
		State:      flags(f.SYN, "SYN", f.Established, "EST", f.FIN, "FIN", f.RST, "RST"),
		PacketsOut: f.Packets[0], PacketsIn: f.Packets[1], BytesOut: f.Bytes[0], BytesIn: f.Bytes[1],
		Age: f.Age, Idle: f.Idle,
	}
	if f.Drop {
		row.Action = "drop"
	}
	if f.Reply {
		row.Initiated = "remote"
	}
	if f.Member != 0 {
		member := f.Member
		row.Member = &member
	}
	return row
}
