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

// seenFlow is a flow's key, and when its last packet passed (CLOCK_MONOTONIC, nanoseconds).
type seenFlow struct {
	key  vrouterFlowKey
	seen uint64
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

// run deletes the flows that were idle longest, of each port that is still crowded. counts
// are of the flows in the table.
func (e *eviction) run(d *Datapath, counts *flowCounts, vrfs map[uint32]uint32) (removed int, err error) {
	for vif, flows := range e.flows {
		use := counts.usage(vif, vrfs[vif], d.options.Limits.Flows)
		if !use.isCrowded() {
			continue
		}
		slices.SortFunc(flows, func(a, b seenFlow) int { return cmp.Compare(a.seen, b.seen) })
		for _, f := range flows[:min(len(flows), int(use.port/evictedShare))] {
			gone, err := d.removeFlow(f.key, f.seen)
			if err != nil {
				return removed, err
			}
			if gone {
				removed++
				counts.add(vif, vrfs[vif], -1)
			}
		}
	}
	return removed, nil
}
