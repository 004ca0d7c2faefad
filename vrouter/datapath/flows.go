package datapath

import (
	"net/netip"
	"time"
)

// FlowKey is a flow as the workload of a vif sees it; both directions are one.
type FlowKey struct {
	Vif           uint32
	Protocol      uint8
	Local, Remote netip.AddrPort
}

// Flow is the state of a flow.
type Flow struct {
	Age, Idle   time.Duration
	Packets     [2]uint64 // 0: from the workload, 1: to it
	Bytes       [2]uint64
	Member      uint32 // ECMP: the chosen nexthop; 0: none
	Composite   uint32
	Drop        bool
	SYN         bool
	Established bool
	FIN         bool // of either side
	RST         bool
	Rule        int  // that decided, from 1; 0: the default
	Reply       bool // the remote side began
}

// Bits of flow.tcp in bpf/types.h.
const (
	tcpSYN = 1 << iota
	tcpEstablished
	tcpFINOut
	tcpFINIn
	tcpRST
)

// Flows calls f with every flow until it returns false.
func (d *Datapath) Flows(f func(FlowKey, Flow) bool) error {
	now, err := monotonic()
	if err != nil {
		return err
	}
	more := true
	t := table[vrouterFlowKey, vrouterFlow]{"flows", d.maps.Flows, false}
	return t.each(func(k vrouterFlowKey, v vrouterFlow) {
		if more {
			more = f(decodeFlowKey(k), decodeFlow(v, now))
		}
	})
}

func decodeFlowKey(k vrouterFlowKey) FlowKey {
	return FlowKey{
		Vif: k.Vif, Protocol: k.Protocol,
		Local:  netip.AddrPortFrom(addrOf(k.Local), netOrder16(k.LocalPort)),
		Remote: netip.AddrPortFrom(addrOf(k.Remote), netOrder16(k.RemotePort)),
	}
}

func since(now, then uint64) time.Duration {
	if then > now {
		return 0
	}
	return time.Duration(now - then)
}

func decodeFlow(v vrouterFlow, now uint64) Flow {
	return Flow{
		Age: since(now, v.CreatedNs), Idle: since(now, v.SeenNs), Packets: v.Packets, Bytes: v.Bytes,
		Member: v.Member, Composite: v.Composite, Drop: v.Action != 0,
		SYN: v.Tcp&tcpSYN != 0, Established: v.Tcp&tcpEstablished != 0, FIN: v.Tcp&(tcpFINOut|tcpFINIn) != 0, RST: v.Tcp&tcpRST != 0,
		Rule: int(v.Rule), Reply: v.Reply != 0,
	}
}

// ExpireFlows removes the flows whose time is up, by the node's settings:
// idle ones, and sooner those of TCP that are closed, reset or half open.
func (d *Datapath) ExpireFlows() (removed int, err error) {
	now, err := monotonic()
	if err != nil {
		return 0, err
	}
	var s vrouterNodeSettings
	if err := d.maps.Settings.Lookup(uint32(0), &s); err != nil {
		return 0, err
	}
	if s.FlowIdleS == 0 {
		return 0, nil
	}
	t := table[vrouterFlowKey, vrouterFlow]{"flows", d.maps.Flows, false}
	var old []vrouterFlowKey
	err = t.each(func(k vrouterFlowKey, v vrouterFlow) {
		limit := s.FlowIdleS
		closed := v.Tcp&tcpRST != 0 || v.Tcp&(tcpFINOut|tcpFINIn) == tcpFINOut|tcpFINIn
		if k.Protocol == 6 && (closed || v.Tcp&tcpEstablished == 0) && s.FlowClosedS != 0 {
			limit = s.FlowClosedS
		}
		if since(now, v.SeenNs) > time.Duration(limit)*time.Second {
			old = append(old, k)
		}
	})
	if err != nil {
		return 0, err
	}
	return len(old), t.remove(old)
}
