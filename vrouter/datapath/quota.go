package datapath

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// usage has the numbers of flows that decide a port's quota: in the port, in its network
// and in the whole table. limit is the size of the table.
type usage struct{ port, network, all, limit int64 }

// isCrowded reports whether a port has more than 4/5 of its quota (bpf/quota.h).
func (u usage) isCrowded() bool { return 5*u.port > 4*(u.limit-u.all-u.network) }

// NearQuota reports whether any port has more than 4/5 of its quota of flows. It is fast if
// the table has few flows.
func (d *Datapath) NearQuota() (bool, error) {
	if may, err := d.mayCrowd(); !may {
		return false, err
	}
	vrfs, err := d.vifVRFs()
	if err != nil {
		return false, err
	}
	crowded, err := d.crowdedVifs(vrfs)
	return len(crowded) > 0, err
}

// mayCrowd reports whether a port with all flows of the table would have more than 4/5 of its
// quota.
func (d *Datapath) mayCrowd() (bool, error) {
	var begun, ended uint32
	if err := errors.Join(d.maps.VrfFlowsBegun.Lookup(uint32(0), &begun), d.maps.VrfFlowsEnded.Lookup(uint32(0), &ended)); err != nil {
		return false, fmt.Errorf("read the number of flows: %w", err)
	}
	all, limit := int64(int32(begun-ended)), int64(d.options.Limits.Flows)
	return (usage{all, all, all, limit}).isCrowded(), nil
}

// crowdedVifs returns the vifs that have more than 4/5 of their quotas of flows.
// vrfs: vif id → VRF.
func (d *Datapath) crowdedVifs(vrfs map[uint32]uint32) (map[uint32]bool, error) {
	if may, err := d.mayCrowd(); !may {
		return nil, err // reading the counts of all vifs takes time
	}
	c, err := d.beginCount()
	if err != nil {
		return nil, err
	}
	subtract := func(from map[uint32]uint32) func(uint32, uint32) {
		return func(id, n uint32) { from[id] -= n }
	}
	err = errors.Join(
		table[uint32, uint32]{"vif_flows_ended", d.maps.VifFlowsEnded, true}.each(subtract(c.vifsBegun)),
		table[uint32, uint32]{"vrf_flows_ended", d.maps.VrfFlowsEnded, true}.each(subtract(c.vrfsBegun)),
	)
	if err != nil {
		return nil, err
	}
	for vif, n := range c.vifsBegun {
		c.vifs[vif] = int32(n)
	}
	for vrf, n := range c.vrfsBegun {
		c.vrfs[vrf] = int32(n)
	}
	crowded := map[uint32]bool{}
	for vif, vrf := range vrfs {
		if c.usage(vif, vrf, d.options.Limits.Flows).isCrowded() {
			crowded[vif] = true
		}
	}
	return crowded, nil
}

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

func (c *flowCounts) usage(vif, vrf, limit uint32) usage {
	return usage{int64(c.vifs[vif]), int64(c.vrfs[vrf]), int64(c.vrfs[0]), int64(limit)}
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
