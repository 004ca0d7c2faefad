package datapath

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
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
	c, err := d.beginCount(vrfs)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(c.vifs.subtract(), c.vrfs.subtract()); err != nil {
		return nil, err
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
type flowCounts struct{ vifs, vrfs flowCount }

// flowCount counts flows by vif or by VRF. It ignores ids above the largest id in use. When such an id gets a new owner, its
// count is set to 0 (renewal).
type flowCount struct {
	begun, ended table[uint32, uint32] // flows since the maps were created, by id
	before       []uint32              // `begun` of the ids in use, read before the flow table
	now          map[uint32]int32      // flows in the table
}

func (d *Datapath) flowCounts() *flowCounts {
	count := func(of string, begun, ended *ebpf.Map) flowCount {
		return flowCount{table[uint32, uint32]{of + "_flows_begun", begun, true}, table[uint32, uint32]{of + "_flows_ended", ended, true}, nil, map[uint32]int32{}}
	}
	return &flowCounts{count("vif", d.maps.VifFlowsBegun, d.maps.VifFlowsEnded), count("vrf", d.maps.VrfFlowsBegun, d.maps.VrfFlowsEnded)}
}

// beginCount starts a count. Call it before you read the flow table. A flow that begins while
// the table is read may count twice, until the next count.
// inUse maps the id of each vif to its VRF.
func (d *Datapath) beginCount(inUse map[uint32]uint32) (*flowCounts, error) {
	lastVif, lastVRF := uint32(0), uint32(0)
	for vif, vrf := range inUse {
		lastVif, lastVRF = max(lastVif, vif), max(lastVRF, vrf)
	}
	c := d.flowCounts()
	return c, errors.Join(c.vifs.begin(lastVif), c.vrfs.begin(lastVRF))
}

// firstOf reads the entries of an array up to an index.
func firstOf(t table[uint32, uint32], last uint32) ([]uint32, error) {
	all := make([]uint32, min(last+1, t.m.MaxEntries()))
	return all, t.eachBelow(len(all), func(id, n uint32) { all[id] = n })
}

func (c *flowCount) begin(last uint32) (err error) {
	c.before, err = firstOf(c.begun, last)
	return err
}

// subtract sets the flows in the table to those that have begun and not ended.
func (c *flowCount) subtract() error {
	ended, err := firstOf(c.ended, uint32(len(c.before)-1))
	for id, n := range c.before {
		c.now[uint32(id)] = int32(n - ended[id])
	}
	return err
}

// clear says that all flows of an id have ended.
func (c *flowCount) clear(id uint32) error {
	var begun uint32
	if err := c.begun.m.Lookup(id, &begun); err != nil {
		return fmt.Errorf("read map %s: %w", c.begun.name, err)
	}
	return c.ended.put([]uint32{id}, []uint32{begun})
}

// add adds n flows of a vif and its VRF.
func (c *flowCounts) add(vif, vrf uint32, n int32) {
	c.vifs.now[vif] += n
	c.vrfs.now[0] += n
	if vrf != 0 {
		c.vrfs.now[vrf] += n
	}
}

func (c *flowCounts) usage(vif, vrf, limit uint32) usage {
	return usage{int64(c.vifs.now[vif]), int64(c.vrfs.now[vrf]), int64(c.vrfs.now[0]), int64(limit)}
}

// end writes how many flows have ended: those that had begun and are not in the table.
func (c *flowCounts) end() error { return errors.Join(c.vifs.end(), c.vrfs.end()) }

// end writes before − now for each id. The difference can wrap: flows of an older
// map are in the table, but have not begun in this one.
func (c *flowCount) end() error {
	ids, ended := make([]uint32, len(c.before)), make([]uint32, len(c.before))
	for i := range ids {
		ids[i] = uint32(i)
		ended[i] = c.before[i] - uint32(c.now[ids[i]])
	}
	return c.ended.put(ids, ended)
}
