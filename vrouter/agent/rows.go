package agent

import (
	"cmp"
	"slices"

	"windtunnel/vrouter/datapath"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/inspect"
	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
)

// tables are the functions that return rows of package inspect, by path. They read
// the maps; only names come from the desired state.
func (a *agent) tables() map[string]func(v *snapshot, vrf uint32) (any, error) {
	return map[string]func(*snapshot, uint32) (any, error){
		"vif":           func(v *snapshot, vrf uint32) (any, error) { return a.vifs(v, vrf) },
		"nh":            func(v *snapshot, vrf uint32) (any, error) { return a.nexthops(v, vrf) },
		"rt":            a.dumped(routeRows),
		"bridge":        a.dumped(bridgeRows),
		"mpls":          a.dumped(func(_ *snapshot, t fib.Tables, vrf uint32) any { return targetRows(t, t.ILM, vrf) }),
		"vxlan":         a.dumped(func(_ *snapshot, t fib.Tables, vrf uint32) any { return targetRows(t, t.VNIs, vrf) }),
		"flow":          func(v *snapshot, vrf uint32) (any, error) { return a.flows(v, vrf) },
		"dropstats":     func(v *snapshot, vrf uint32) (any, error) { return a.dropStats(v, vrf) },
		"droplog":       func(v *snapshot, vrf uint32) (any, error) { return a.drops.list(v, vrf), nil },
		"fallbackstats": func(v *snapshot, vrf uint32) (any, error) { return a.fallbackStats(v, vrf) },
		"service":       func(*snapshot, uint32) (any, error) { return a.reconciler.Plane().Services() },
		"vrfstats":      func(v *snapshot, vrf uint32) (any, error) { return a.vrfStats(v, vrf) },
	}
}

// dumped makes a function that returns rows of the maps' contents.
func (a *agent) dumped(rows func(*snapshot, fib.Tables, uint32) any) func(*snapshot, uint32) (any, error) {
	return func(v *snapshot, vrf uint32) (any, error) {
		t, err := a.reconciler.Plane().Dump()
		return rows(v, t, vrf), err
	}
}

// rowsOf returns the sorted rows of the entries of a map that are in a VRF; vrf 0: of all entries.
func rowsOf[K comparable, V, R any](all map[K]V, vrf uint32, vrfOf func(K, V) uint32, row func(K, V) R, compare func(a, b R) int) []R {
	rows := []R{}
	for k, v := range all {
		if vrf == 0 || vrfOf(k, v) == vrf {
			rows = append(rows, row(k, v))
		}
	}
	slices.SortFunc(rows, compare)
	return rows
}

// vifs returns the vifs of the fabric and of workloads.
func (a *agent) vifs(v *snapshot, vrf uint32) ([]inspect.Vif, error) {
	t, err := a.reconciler.Plane().Dump()
	if err != nil {
		return nil, err
	}
	stats, err := a.reconciler.Plane().VifStats()
	if err != nil {
		return nil, err
	}
	drops, err := a.reconciler.Plane().Drops()
	if err != nil {
		return nil, err
	}
	attached, err := a.reconciler.Plane().Attached()
	if err != nil {
		return nil, err
	}
	modes, dropped := map[uint32]string{}, map[uint32]uint64{}
	for _, at := range attached {
		modes[uint32(at.Ifindex)] = at.Mode
	}
	for key, n := range drops {
		dropped[key.Vif] += n
	}
	rows := []inspect.Vif{}
	if vrf == 0 {
		rows = append(rows, a.fabricRows(v, modes, dropped[0])...)
	}
	for ifindex, f := range t.Vifs {
		if vrf != 0 && f.VRF != vrf {
			continue
		}
		row := vifRow(v, ifindex, f)
		row.Mode, row.Drops = modes[ifindex], dropped[f.ID]
		s := stats[f.ID]
		row.RxPackets, row.RxBytes, row.TxPackets, row.TxBytes = s.RxPackets, s.RxBytes, s.TxPackets, s.TxBytes
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b inspect.Vif) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Device, b.Device))
	})
	return rows, nil
}

// fabricRows returns the underlay devices with the kernel's counters, which also
// count traffic outside the overlay. The row of the first device has the drops of
// packets from all fabric devices.
func (a *agent) fabricRows(v *snapshot, modes map[uint32]string, dropped uint64) []inspect.Vif {
	var rows []inspect.Vif
	for _, f := range v.fabric {
		l, err := a.space.Links.LinkByIndex(f.Link.Attrs().Index)
		if err != nil {
			continue // deleted since the last pass
		}
		at := l.Attrs()
		row := inspect.Vif{Device: at.Name, Ifindex: uint32(at.Index), Type: "fabric", MTU: uint16(min(at.MTU, 65535)), Mode: modes[uint32(at.Index)], Drops: dropped}
		dropped = 0
		if len(at.HardwareAddr) == len(row.MAC) {
			row.MAC = model.MAC(at.HardwareAddr)
		}
		if s := at.Statistics; s != nil {
			row.RxPackets, row.RxBytes, row.TxPackets, row.TxBytes = s.RxPackets, s.RxBytes, s.TxPackets, s.TxBytes
		}
		rows = append(rows, row)
	}
	return rows
}

func vifRow(v *snapshot, ifindex uint32, f layout.Vif) inspect.Vif {
	return inspect.Vif{
		ID: f.ID, Device: v.device(f.ID, ifindex), Ifindex: ifindex, Type: "virtual", Port: v.names().vifs[f.ID],
		Network: v.networks[f.VRF].Name, VRF: f.VRF, Nexthop: f.Nexthop, MAC: f.MAC, MTU: f.MTU,
		Flags: flags(f.Flags&layout.VifL2 != 0, "L2", f.Flags&layout.VifL3 != 0, "L3", f.Flags&layout.VifPolicy != 0, "Policy"), Sources: f.Sources(),
	}
}

// flags returns the names of set flags. pairs alternates values and names.
func flags(pairs ...any) []string {
	var set []string
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i].(bool) {
			set = append(set, pairs[i+1].(string))
		}
	}
	return set
}

// routeRows returns the routes, sorted by VRF and prefix.
func routeRows(v *snapshot, t fib.Tables, vrf uint32) any {
	return rowsOf(t.Routes, vrf, func(k fib.RouteKey, _ layout.Route) uint32 { return k.VRF }, func(k fib.RouteKey, r layout.Route) inspect.Route {
		return inspect.Route{
			VRF: k.VRF, Network: v.networks[k.VRF].Name, Destination: k.Prefix, Label: r.Label, Nexthop: r.Nexthop, StitchedMAC: r.MAC,
			Flags: flags(!r.MAC.IsZero(), "MAC", k.Prefix.IsSingleIP(), "Host"),
		}
	}, func(a, b inspect.Route) int {
		return cmp.Or(cmp.Compare(a.VRF, b.VRF), a.Destination.Addr().Compare(b.Destination.Addr()), cmp.Compare(a.Destination.Bits(), b.Destination.Bits()))
	})
}

func bridgeRows(v *snapshot, t fib.Tables, vrf uint32) any {
	return rowsOf(t.Bridge, vrf, func(k layout.BridgeKey, _ layout.BridgeEntry) uint32 { return k.VRF }, func(k layout.BridgeKey, b layout.BridgeEntry) inspect.Bridge {
		return inspect.Bridge{VRF: k.VRF, Network: v.networks[k.VRF].Name, MAC: k.MAC, Label: b.Label, Nexthop: b.Nexthop}
	}, func(a, b inspect.Bridge) int {
		return cmp.Or(cmp.Compare(a.VRF, b.VRF), slices.Compare(a.MAC[:], b.MAC[:]))
	})
}

// targetRows returns the ILM or the VNIs. Their VRF is that of their nexthop.
func targetRows(t fib.Tables, all map[uint32]layout.Target, vrf uint32) any {
	payloads := [...]string{"ip", "ethernet"}
	return rowsOf(all, vrf, func(_ uint32, to layout.Target) uint32 { return t.Nexthops[to.Nexthop].VRF }, func(id uint32, to layout.Target) inspect.Target {
		return inspect.Target{ID: id, Payload: payloads[to.Ethernet&1], Nexthop: to.Nexthop}
	}, func(a, b inspect.Target) int { return cmp.Compare(a.ID, b.ID) })
}

func (a *agent) dropStats(v *snapshot, vrf uint32) ([]inspect.Drop, error) {
	drops, err := a.reconciler.Plane().Drops()
	if err != nil {
		return nil, err
	}
	in, err := a.vifsOf(vrf)
	if err != nil {
		return nil, err
	}
	rows := []inspect.Drop{}
	for key, n := range drops {
		if vrf != 0 && !in[key.Vif] {
			continue
		}
		reason := datapath.ReasonOf(key.Reason)
		rows = append(rows, inspect.Drop{Vif: key.Vif, Device: v.device(key.Vif, 0), Reason: reason.Name, Meaning: reason.Meaning, Packets: n})
	}
	slices.SortFunc(rows, func(a, b inspect.Drop) int {
		return cmp.Or(cmp.Compare(b.Packets, a.Packets), cmp.Compare(a.Vif, b.Vif), cmp.Compare(a.Reason, b.Reason))
	})
	return rows, nil
}

// vifsOf returns the ids of a VRF's vifs; nil for VRF 0, which stands for all.
func (a *agent) vifsOf(vrf uint32) (map[uint32]bool, error) {
	if vrf == 0 {
		return nil, nil
	}
	t, err := a.reconciler.Plane().Dump()
	if err != nil {
		return nil, err
	}
	in := map[uint32]bool{}
	for _, f := range t.Vifs {
		if f.VRF == vrf {
			in[f.ID] = true
		}
	}
	return in, nil
}

func (a *agent) vrfStats(v *snapshot, vrf uint32) ([]inspect.VRFStats, error) {
	stats, err := a.reconciler.Plane().VRFStats()
	return rowsOf(stats, vrf, func(id uint32, _ layout.VRFCounters) uint32 { return id }, func(id uint32, s layout.VRFCounters) inspect.VRFStats {
		row := inspect.VRFStats{VRF: id, Network: v.networks[id].Name, ByEncapsulation: map[string]inspect.Traffic{}}
		for i := range layout.Encapsulations {
			row.ByEncapsulation[encapsulationName(uint32(i))] = inspect.Traffic{
				TxPackets: s.TxPackets[i], TxBytes: s.TxBytes[i], RxPackets: s.RxPackets[i], RxBytes: s.RxBytes[i],
			}
		}
		return row
	}, func(a, b inspect.VRFStats) int { return cmp.Compare(a.VRF, b.VRF) }), err
}

func (a *agent) fallbackStats(v *snapshot, vrf uint32) ([]inspect.Fallback, error) {
	fallbacks, err := a.reconciler.Plane().Fallbacks()
	return rowsOf(fallbacks, vrf, func(k layout.FallbackKey, _ uint64) uint32 { return k.VRF }, func(k layout.FallbackKey, n uint64) inspect.Fallback {
		reason := datapath.FallbackReasonOf(k.Reason)
		return inspect.Fallback{VRF: k.VRF, Network: v.networks[k.VRF].Name, Reason: reason.Name, Meaning: reason.Meaning, Packets: n}
	}, func(a, b inspect.Fallback) int {
		return cmp.Or(cmp.Compare(b.Packets, a.Packets), cmp.Compare(a.VRF, b.VRF), cmp.Compare(a.Reason, b.Reason))
	}), err
}
