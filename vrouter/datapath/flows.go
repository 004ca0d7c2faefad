package datapath

import (
	"errors"
	"fmt"
	"maps"
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
	Created     uint64 // CLOCK_MONOTONIC, nanoseconds; another flow with the same key has another time
	Age, Idle   time.Duration
	Packets     [2]uint64 // 0: from the workload, 1: to it
	Bytes       [2]uint64
	Member      uint32 // ECMP: the chosen nexthop; 0: none
	Composite   uint32
	Drop        bool
	SYN         bool
	Established bool
	Closed      bool // by both sides, or reset
	FIN         bool // of either side
	RST         bool
	Rule        int   // that decided, from 1; 0: the default
	Reply       bool  // the remote side began
	ICMP        uint8 // type of the first packet
	Service     bool  // to a service, or from outside to the pool of a network: another flow has the same packets
	// Pool is the address and port (or ICMP identifier) of the network's pool that the remote end has outside; zero: the
	// remote end is not translated.
	Pool netip.AddrPort
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

// Values of flow.translation in bpf/types.h.
const (
	toBackend   = 1
	fromBackend = 2
	toItself    = 3
)

// FlowEnd says why a flow is deleted.
type FlowEnd uint8

// Reasons to delete a flow.
const (
	FlowStays   FlowEnd = iota
	FlowExpired         // it was idle, or closed
	FlowEvicted         // to make room
	FlowOrphan          // its vif does not exist
)

// FlowWatch is called with each flow that stays in the table, and with the last state of each flow that is deleted.
type FlowWatch func(FlowKey, Flow, FlowEnd)

// WatchFlows sets the function that ExpireFlows and Apply call for flows; nil: none.
func (d *Datapath) WatchFlows(w FlowWatch) { d.watch = w }

// watched calls the watch. now: CLOCK_MONOTONIC.
func (d *Datapath) watched(k layout.FlowKey, v layout.Flow, now uint64, end FlowEnd) {
	if d.watch != nil {
		d.watch(decodeFlowKey(k), decodeFlow(v, now), end)
	}
}

// flowTable is the map of flows.
func (d *Datapath) flowTable() table[layout.FlowKey, layout.Flow] {
	return table[layout.FlowKey, layout.Flow]{"flows", d.maps.Flows, false}
}

// Flows calls f with every flow until it returns false.
func (d *Datapath) Flows(f func(FlowKey, Flow) bool) error {
	now, err := monotonic()
	if err != nil {
		return err
	}
	more := true
	return d.flowTable().each(func(k layout.FlowKey, v layout.Flow) {
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
	f := Flow{
		Created: v.CreatedNs, Age: since(now, v.CreatedNs), Idle: since(now, v.SeenNs), Packets: v.Packets, Bytes: v.Bytes,
		Member: v.Member, Composite: v.Composite, Drop: v.Action != 0,
		Closed: isClosed(&v), SYN: v.TCP&tcpSYN != 0, Established: v.TCP&tcpEstablished != 0, FIN: v.TCP&(tcpFINOut|tcpFINIn) != 0, RST: v.TCP&tcpRST != 0,
		Rule: int(v.Rule), Reply: v.Reply != 0, ICMP: v.Icmp, Service: v.Translation == toBackend || v.Translation == toItself,
	}
	if v.Translation == fromBackend && f.Reply { // the workload of a service's flow has begun it
		f.Pool = netip.AddrPortFrom(v.Other.Addr(), layout.Network16(v.OtherPort))
	}
	return f
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
	counts, err := d.beginCount(before)
	if err != nil {
		return 0, 0, err
	}
	var expired []seenFlow
	evicted := newEviction(crowded)
	orphans := map[layout.FlowKey]layout.Flow{}
	err = d.flowTable().each(func(k layout.FlowKey, v layout.Flow) {
		vrf, exists := before[k.Vif]
		switch {
		case isForgotten(d.options.Times, k.Protocol, &v, now):
			expired = append(expired, seenFlow{k, v.SeenNs})
		case !exists:
			orphans[k] = v
		default:
			d.watched(k, v, now, FlowStays)
			evicted.add(k, &v)
		}
		counts.add(k.Vif, vrf, 1)
	})
	if err != nil {
		return 0, 0, err
	}
	if removed, err = d.removeFlows(expired, counts, before, FlowExpired); err != nil {
		return removed, 0, err
	}
	n, err := d.removeFlows(evicted.oldest(counts, before, d.options.Limits.Flows), counts, before, FlowEvicted)
	removed += n
	if err != nil {
		return removed, 0, err
	}
	// A vif may have come, and begun flows, while they were read.
	after, err := d.vifVRFs()
	if err != nil {
		return removed, 0, err
	}
	maps.DeleteFunc(orphans, func(k layout.FlowKey, _ layout.Flow) bool { _, exists := after[k.Vif]; return exists })
	for k := range orphans {
		counts.add(k.Vif, 0, -1)
	}
	return removed + len(orphans), int(counts.vrfs.now[0]), errors.Join(d.removeOrphans(orphans, now), counts.end())
}

// removeOrphans deletes flows of vifs that do not exist. No packet changes such a flow.
func (d *Datapath) removeOrphans(flows map[layout.FlowKey]layout.Flow, now uint64) error {
	for k, v := range flows {
		d.watched(k, v, now, FlowOrphan)
	}
	return d.flowTable().remove(slices.Collect(maps.Keys(flows)))
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
func (d *Datapath) removeFlows(flows []seenFlow, counts *flowCounts, vrfs map[uint32]uint32, end FlowEnd) (removed int, err error) {
	for _, f := range flows {
		gone, err := d.removeFlow(f.key, f.seen, end)
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
func (d *Datapath) removeFlow(k layout.FlowKey, seen uint64, end FlowEnd) (bool, error) {
	var v layout.Flow
	err := d.maps.Flows.LookupAndDelete(&k, &v)
	if errors.Is(err, ebpf.ErrKeyNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("remove a flow: %w", err)
	}
	if v.SeenNs == seen {
		now, err := monotonic()
		d.watched(k, v, now, end)
		return true, err
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
