package datapath

import (
	"cmp"
	"slices"

	"golang.org/x/sys/unix"

	"windtunnel/vrouter/layout"
)

// eviction makes room for new flows of ports that are near their quotas (bpf/quota.h). It
// selects unanswered or closed flows of the same port for deletion.
type eviction struct {
	flows map[uint32][]seenFlow // crowded vif → its flows that may be deleted
}

// evictedShare limits an eviction: at most 1/evictedShare of a port's flows is deleted.
const evictedShare = 4

func newEviction(crowded map[uint32]bool) *eviction {
	e := &eviction{flows: map[uint32][]seenFlow{}}
	for vif := range crowded {
		e.flows[vif] = nil
	}
	return e
}

// add records a flow if its port is crowded and the flow may be deleted.
func (e *eviction) add(k layout.FlowKey, v *layout.Flow) {
	if flows, crowded := e.flows[k.Vif]; crowded && isEvictable(k.Protocol, v) {
		e.flows[k.Vif] = append(flows, seenFlow{k, v.SeenNs})
	}
}

// isEvictable reports whether a flow may be deleted to make room for a new flow of its
// port. Flows of a vif without a policy always count as unanswered. If such a flow is
// deleted, its packets choose their path by their hash.
func isEvictable(protocol uint8, v *layout.Flow) bool {
	if protocol == unix.IPPROTO_TCP {
		return isClosed(v) || v.TCP&tcpEstablished == 0
	}
	return !isAnswered(v)
}

// oldest returns the flows to delete: the longest idle flows of each port that is still
// crowded. counts: flows in the table. vrfs: vif id → VRF.
func (e *eviction) oldest(counts *flowCounts, vrfs map[uint32]uint32, limit uint32) (all []seenFlow) {
	for vif, flows := range e.flows {
		use := counts.usage(vif, vrfs[vif], limit)
		if !use.isCrowded() {
			continue
		}
		slices.SortFunc(flows, func(a, b seenFlow) int { return cmp.Compare(a.seen, b.seen) })
		all = append(all, flows[:min(len(flows), int(use.port/evictedShare))]...)
	}
	return all
}
