package datapath

import (
	"errors"
	"maps"
	"slices"
)

// flowCounts counts flows for the quotas of bpf/quota.h: by vif, and by VRF with the
// whole table under VRF 0.
type flowCounts struct {
	vifs, vrfs           map[uint32]int32  // flows in the table
	vifsBegun, vrfsBegun map[uint32]uint32 // flows that had begun before the table was read
}

// beginCount starts a count. Call it before you read the flow table. A flow that begins while
// the table is read may count twice, until the next count.
func (d *Datapath) beginCount() (*flowCounts, error) {
	c := &flowCounts{vifs: map[uint32]int32{}, vrfs: map[uint32]int32{}, vifsBegun: map[uint32]uint32{}, vrfsBegun: map[uint32]uint32{}}
	return c, errors.Join(
		// An id without flows now can have a count of ended flows from before.
		table[uint32, uint32]{"vif_flows_ended", d.maps.VifFlowsEnded, true}.each(func(id, _ uint32) { c.vifsBegun[id] = 0 }),
		table[uint32, uint32]{"vrf_flows_ended", d.maps.VrfFlowsEnded, true}.each(func(id, _ uint32) { c.vrfsBegun[id] = 0 }),
		table[uint32, uint32]{"vif_flows_begun", d.maps.VifFlowsBegun, true}.each(func(id, n uint32) { c.vifsBegun[id] = n }),
		table[uint32, uint32]{"vrf_flows_begun", d.maps.VrfFlowsBegun, true}.each(func(id, n uint32) { c.vrfsBegun[id] = n }),
	)
}

// add adds n flows of a vif and its VRF.
func (c *flowCounts) add(vif, vrf uint32, n int32) {
	c.vifs[vif] += n
	c.vrfs[0] += n
	if vrf != 0 {
		c.vrfs[vrf] += n
	}
}

// end writes how many flows have ended: those that had begun and are not in the table.
func (c *flowCounts) end(d *Datapath) error {
	return errors.Join(
		writeEnded(table[uint32, uint32]{"vif_flows_ended", d.maps.VifFlowsEnded, true}, c.vifsBegun, c.vifs),
		writeEnded(table[uint32, uint32]{"vrf_flows_ended", d.maps.VrfFlowsEnded, true}, c.vrfsBegun, c.vrfs),
	)
}

// writeEnded writes begun − now for each id. The difference can wrap: flows of an older
// map are in the table, but have not begun in this one.
func writeEnded(t table[uint32, uint32], begun map[uint32]uint32, now map[uint32]int32) error {
	for id := range now {
		begun[id] -= uint32(now[id])
	}
	return t.put(slices.Collect(maps.Keys(begun)), slices.Collect(maps.Values(begun)))
}
