package datapath

import (
	"cmp"
	"slices"

	"golang.org/x/sys/unix"
)

// eviction makes room for new flows of ports that are near their quotas (bpf/quota.h): it
// deletes flows of the same port that the other side has not answered, or that are closed.
type eviction struct {
	flows map[uint32][]seenFlow // vif → flows that may be deleted; only of crowded vifs
}

// evictedShare: one of so many of the flows of a crowded port is deleted at a time.
const evictedShare = 4

func newEviction(crowded map[uint32]bool) *eviction {
	e := &eviction{flows: map[uint32][]seenFlow{}}
	for vif := range crowded {
		e.flows[vif] = nil
	}
	return e
}

// add notes a flow that may be deleted.
func (e *eviction) add(k vrouterFlowKey, v *vrouterFlow) {
	if flows, crowded := e.flows[k.Vif]; crowded && isEvictable(k.Protocol, v) {
		e.flows[k.Vif] = append(flows, seenFlow{k, v.SeenNs})
	}
}

// isEvictable reports whether a flow may be deleted for another one of its port. A vif
// without a policy has flows that are never answered: without its entry such a flow goes
// by its hash.
func isEvictable(protocol uint8, v *vrouterFlow) bool {
	if protocol == unix.IPPROTO_TCP {
		return isClosed(v) || v.Tcp&tcpEstablished == 0
	}
	return !isAnswered(v)
}

// oldest returns the flows to delete: of each port that is still crowded, those that were
// idle longest. counts are of the flows in the table, vrfs: vif id → VRF.
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
