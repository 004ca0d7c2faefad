package agent

import (
	"cmp"
	"slices"

	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/inspect"
	"windtunnel/vrouter/layout"
)

var nexthopTypes = map[uint8]string{
	layout.Discard: "discard", layout.Receive: "receive", layout.Encap: "encap", layout.Tunnel: "tunnel",
	layout.Composite: "composite", layout.VRFTranslate: "vrf", layout.L2Receive: "l2-receive",
}

// nexthops are those in the maps; of one VRF those that its routes, bridge
// entries, labels and ports lead to.
func (a *agent) nexthops(v *snapshot, vrf uint32) ([]inspect.Nexthop, error) {
	t, err := a.reconciler.Plane().Dump()
	if err != nil {
		return nil, err
	}
	learned, err := a.reconciler.Plane().LearnedMTUs()
	if err != nil {
		return nil, err
	}
	counts := references(t, 0)
	wanted := counts
	if vrf != 0 {
		wanted = references(t, vrf)
	}
	rows := []inspect.Nexthop{}
	for id, n := range t.Nexthops {
		if vrf != 0 && wanted[id] == 0 {
			continue
		}
		row := nexthopRow(v, id, n, t.MembersOf(id))
		row.References, row.LearnedMTU = counts[id], learned[id]
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b inspect.Nexthop) int { return cmp.Compare(a.ID, b.ID) })
	return rows, nil
}

func nexthopRow(v *snapshot, id uint32, n layout.Nexthop, members []layout.Member) inspect.Nexthop {
	row := inspect.Nexthop{
		ID: id, Type: nexthopTypes[n.Type], Name: v.names().nexthops[id], VRF: n.VRF, Vif: n.Vif,
		Encapsulation: n.Encapsulation(), MTU: n.MTU, DMAC: n.DMAC,
		Flags: flags(n.Flags&layout.NexthopDF != 0, "DF", n.Type == layout.Composite && n.Flags&layout.NexthopMulticast == 0, "ECMP",
			n.Flags&layout.NexthopMulticast != 0, "Multicast", n.Flags&layout.NexthopPeer != 0, "Peer"),
	}
	if n.Oif != 0 {
		row.Device = v.device(n.Vif, n.Oif)
	}
	for _, p := range n.Ways() {
		row.Paths = append(row.Paths, inspect.Path{Source: p.Source.Addr(), Destination: p.Destination.Addr(), Gateway: p.Gateway.Addr(), Device: v.names().indexes[p.Oif]})
	}
	for _, m := range members {
		row.Members = append(row.Members, inspect.Member{Nexthop: m.Nexthop, Label: m.Label})
	}
	return row
}

// references counts what points at each nexthop: of one VRF, or with 0 of all.
func references(t fib.Tables, vrf uint32) map[uint32]int {
	count := map[uint32]int{}
	in := func(v uint32) bool { return vrf == 0 || v == vrf }
	for key, r := range t.Routes {
		if in(key.VRF) {
			count[r.Nexthop]++
		}
	}
	for key, b := range t.Bridge {
		if in(key.VRF) {
			count[b.Nexthop]++
		}
	}
	for id, n := range t.VRFs {
		if in(id) && n.Flood != 0 {
			count[n.Flood]++
		}
	}
	for _, f := range t.Vifs {
		if in(f.VRF) {
			count[f.Nexthop]++
		}
	}
	for _, targets := range []map[uint32]layout.Target{t.ILM, t.VNIs} {
		for _, target := range targets {
			if in(t.Nexthops[target.Nexthop].VRF) {
				count[target.Nexthop]++
			}
		}
	}
	if vrf == 0 {
		for _, r := range t.Remotes {
			count[r.Nexthop]++
		}
	}
	for k, m := range t.Members {
		if vrf == 0 || count[k.Nexthop] != 0 {
			count[m.Nexthop]++
		}
	}
	return count
}
