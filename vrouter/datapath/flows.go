package datapath

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"windtunnel/vrouter/layout"
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
	Rule        int   // that decided, from 1; 0: the default
	Reply       bool  // the remote side began
	ICMP        uint8 // type of the first packet
}

// FlowTimes are the times after which flows expire; 0: never. They are constants of the programs.
type FlowTimes struct {
	Idle       time.Duration // established TCP connections stay for at least 2 h 4 min
	Unanswered time.Duration // of flows other than TCP whose other side never sent
	Closed     time.Duration // of closed and half-open TCP flows
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
	t := table[layout.FlowKey, layout.Flow]{"flows", d.maps.Flows, false}
	return t.each(func(k layout.FlowKey, v layout.Flow) {
		if more {
			more = f(decodeFlowKey(k), decodeFlow(v, now))
		}
	})
}

func decodeFlowKey(k layout.FlowKey) FlowKey {
	return FlowKey{
		Vif: k.Vif, Protocol: k.Protocol,
		Local:  netip.AddrPortFrom(k.Local.Addr(), layout.Network16(k.LocalPort)),
		Remote: netip.AddrPortFrom(k.Remote.Addr(), layout.Network16(k.RemotePort)),
	}
}

func since(now, then uint64) time.Duration {
	if then > now {
		return 0
	}
	return time.Duration(now - then)
}

func decodeFlow(v layout.Flow, now uint64) Flow {
	return Flow{
		Age: since(now, v.CreatedNs), Idle: since(now, v.SeenNs), Packets: v.Packets, Bytes: v.Bytes,
		Member: v.Member, Composite: v.Composite, Drop: v.Action != 0,
		SYN: v.TCP&tcpSYN != 0, Established: v.TCP&tcpEstablished != 0, FIN: v.TCP&(tcpFINOut|tcpFINIn) != 0, RST: v.TCP&tcpRST != 0,
		Rule: int(v.Rule), Reply: v.Reply != 0, ICMP: v.Icmp,
	}
}

// ExpireFlows deletes flows that have expired by Options.Times, and the flows of vifs that do
// not exist. If a port is near its quota, ExpireFlows also deletes its oldest unanswered or closed flows. It sets the counts of
// flows for the quotas. left is the number of flows that stay.
func (d *Datapath) ExpireFlows() (removed, left int, err error) {
	now, err := monotonic()
	if err != nil {
		return 0, 0, err
	}
	before, err := d.vifVRFs()
	if err != nil {
		return 0, 0, err
	}
	crowded, err := d.crowdedVifs(before)
	if err != nil {
		return 0, 0, err
	}
	counts, err := d.beginCount()
	if err != nil {
		return 0, 0, err
	}
	var expired []seenFlow
	evicted := newEviction(crowded)
	t := table[layout.FlowKey, layout.Flow]{"flows", d.maps.Flows, false}
	var orphans []layout.FlowKey
	err = t.each(func(k layout.FlowKey, v layout.Flow) {
		vrf, exists := before[k.Vif]
		switch {
		case isForgotten(d.options.Times, k.Protocol, &v, now):
			expired = append(expired, seenFlow{k, v.SeenNs})
		case !exists:
			orphans = append(orphans, k)
		default:
			evicted.add(k, &v)
		}
		counts.add(k.Vif, vrf, 1)
	})
	if err != nil {
		return 0, 0, err
	}
	if removed, err = d.removeFlows(expired, counts, before); err != nil {
		return removed, 0, err
	}
	n, err := d.removeFlows(evicted.oldest(counts, before, d.options.Limits.Flows), counts, before)
	removed += n
	if err != nil {
		return removed, 0, err
	}
	// A vif may have come, and begun flows, while they were read.
	after, err := d.vifVRFs()
	if err != nil {
		return removed, 0, err
	}
	orphans = slices.DeleteFunc(orphans, func(k layout.FlowKey) bool { _, exists := after[k.Vif]; return exists })
	for _, k := range orphans {
		counts.add(k.Vif, 0, -1)
	}
	return removed + len(orphans), int(counts.vrfs[0]), errors.Join(t.remove(orphans), counts.end(d))
}

// establishedTime is the least timeout of an established TCP connection (RFC 5382).
const establishedTime = 2*time.Hour + 4*time.Minute

// isForgotten is is_forgotten of bpf/flowstate.h.
func isForgotten(times FlowTimes, protocol uint8, v *layout.Flow, now uint64) bool {
	limit := times.Idle
	switch {
	case protocol == unix.IPPROTO_TCP && (isClosed(v) || v.TCP&tcpEstablished == 0):
		limit = times.Closed
	case protocol == unix.IPPROTO_TCP && v.TCP&(tcpFINOut|tcpFINIn) == 0 && limit != 0:
		limit = max(limit, establishedTime)
	case protocol != unix.IPPROTO_TCP && v.Policy != 0 && !isAnswered(v):
		limit = times.Unanswered
	}
	return limit != 0 && since(now, v.SeenNs) > limit
}

func isClosed(v *layout.Flow) bool {
	return v.TCP&tcpRST != 0 || v.TCP&(tcpFINOut|tcpFINIn) == tcpFINOut|tcpFINIn
}

// isAnswered reports whether the receiver of the first packet has sent a packet. It is
// always false on a vif without a policy: there the programs count one side only.
func isAnswered(v *layout.Flow) bool { return v.Packets[1-v.Reply&1] != 0 }

// seenFlow is a flow's key, and the time of its last packet (CLOCK_MONOTONIC, nanoseconds).
type seenFlow struct {
	key  layout.FlowKey
	seen uint64
}

// removeFlows deletes flows, except those with a packet since the table was read. It
// subtracts the deleted flows from counts.
// vrfs: vif id → VRF.
func (d *Datapath) removeFlows(flows []seenFlow, counts *flowCounts, vrfs map[uint32]uint32) (removed int, err error) {
	for _, f := range flows {
		gone, err := d.removeFlow(f.key, f.seen)
		if err != nil {
			return removed, err
		}
		if gone {
			removed++
			counts.add(f.key.Vif, vrfs[f.key.Vif], -1)
		}
	}
	return removed, nil
}

// removeFlow removes an entry whose last packet was at the time seen. If a packet has
// renewed the entry meanwhile, it puts the entry back.
func (d *Datapath) removeFlow(k layout.FlowKey, seen uint64) (bool, error) {
	var v layout.Flow
	err := d.maps.Flows.LookupAndDelete(&k, &v)
	if errors.Is(err, ebpf.ErrKeyNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("remove a flow: %w", err)
	}
	if v.SeenNs == seen {
		return true, nil
	}
	err = d.maps.Flows.Update(&k, &v, ebpf.UpdateNoExist)
	if err != nil && !errors.Is(err, ebpf.ErrKeyExist) {
		return false, fmt.Errorf("put back a flow that has been renewed: %w", err)
	}
	return false, nil
}

// vifVRFs returns the VRFs of the vifs: vif id → VRF.
func (d *Datapath) vifVRFs() (map[uint32]uint32, error) {
	vrfs := map[uint32]uint32{}
	err := d.tables().vifs.each(func(_ uint32, v layout.Vif) { vrfs[v.ID] = v.VRF })
	return vrfs, err
}
