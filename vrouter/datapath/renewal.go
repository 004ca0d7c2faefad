package datapath

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"

	"windtunnel/vrouter/layout"
)

// renewal is the step of an Apply that clears the entries of ids that get a new owner. So
// a port does not inherit the counters and flows of an older port with the same id, and a
// tunnel does not inherit the learned MTU of another tunnel.
type renewal struct {
	d        *Datapath
	vifs     []uint32 // ids that are not in use yet
	vrfs     []uint32 // to be written
	nexthops []uint32 // to be written, except composites
	values   []layout.Nexthop
}

// freshVifs returns the ids of the wanted vifs that no present vif has.
func freshVifs(have, want map[uint32]layout.Vif) (fresh []uint32) {
	used := map[uint32]bool{}
	for _, v := range have {
		used[v.ID] = true
	}
	for _, v := range want {
		if !used[v.ID] {
			fresh = append(fresh, v.ID)
		}
	}
	return fresh
}

// update runs before the other steps, while the programs do not use these ids.
func (r *renewal) update() (int, error) {
	cpus, err := ebpf.PossibleCPU()
	if err != nil {
		return 0, fmt.Errorf("count the CPUs: %w", err)
	}
	if err := r.removeFlows(); err != nil {
		return 0, err
	}
	flows := r.d.flowCounts()
	for _, id := range r.vifs {
		if err := flows.vifs.clear(id); err != nil {
			return 0, err
		}
		if err := r.d.maps.VifStats.Put(id, make([]layout.VifCounters, cpus)); err != nil {
			return 0, fmt.Errorf("clear the counters of vif %d: %w", id, err)
		}
		for _, index := range []uint32{2 * id, 2*id + 1} { // one entry per direction
			if err := r.d.maps.Fragments.Put(index, make([]byte, r.d.maps.Fragments.ValueSize())); err != nil {
				return 0, fmt.Errorf("clear the first fragments of vif %d: %w", id, err)
			}
		}
		for _, reason := range reasons {
			err := r.d.maps.Drops.Delete(layout.DropKey{Vif: id, Reason: reason.Number})
			if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
				return 0, fmt.Errorf("clear the drops of vif %d: %w", id, err)
			}
		}
	}
	for _, id := range r.vrfs {
		if err := r.renewVRF(id, cpus, &flows.vrfs); err != nil {
			return 0, err
		}
	}
	for i, id := range r.nexthops {
		if err := r.renewNexthop(id, r.values[i]); err != nil {
			return 0, err
		}
	}
	return 0, nil
}

// removeFlows removes the flows of an older vif, because a policy lets packets of its flows
// pass. ExpireFlows corrects the counts of their VRFs and of the whole table.
func (r *renewal) removeFlows() error {
	if len(r.vifs) == 0 {
		return nil
	}
	fresh := map[uint32]bool{}
	for _, id := range r.vifs {
		fresh[id] = true
	}
	now, err := monotonic()
	if err != nil {
		return err
	}
	old := map[layout.FlowKey]layout.Flow{}
	if err := r.d.flowTable().each(func(k layout.FlowKey, v layout.Flow) {
		if fresh[k.Vif] {
			old[k] = v
		}
	}); err != nil {
		return err
	}
	return r.d.removeOrphans(old, now)
}

func (r *renewal) renewVRF(id uint32, cpus int, flows *flowCount) error {
	var now layout.VRF
	if err := r.d.maps.Vrfs.Lookup(id, &now); err != nil {
		return fmt.Errorf("read VRF %d: %w", id, err)
	}
	if now != (layout.VRF{}) {
		return nil
	}
	if err := flows.clear(id); err != nil {
		return err
	}
	if err := r.d.maps.VrfStats.Put(id, make([]layout.VRFCounters, cpus)); err != nil {
		return fmt.Errorf("clear the counters of VRF %d: %w", id, err)
	}
	for _, reason := range fallbackReasons {
		err := r.d.maps.Fallbacks.Delete(layout.FallbackKey{VRF: id, Reason: reason.Number})
		if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return fmt.Errorf("clear the fallbacks of VRF %d: %w", id, err)
		}
	}
	return nil
}

func (r *renewal) renewNexthop(id uint32, next layout.Nexthop) error {
	if next.Type != layout.Tunnel {
		return nil
	}
	now, err := r.d.tables().nexthops.lookup(id)
	if err != nil {
		return err
	}
	if now.Type == next.Type && now.Paths == next.Paths && now.Path == next.Path {
		return nil
	}
	if err := r.d.maps.LearnedMtus.Put(id, layout.LearnedMTU{}); err != nil {
		return fmt.Errorf("clear the learned MTU of nexthop %d: %w", id, err)
	}
	return nil
}

func (r *renewal) prune() (int, error) { return 0, nil }

func (r *renewal) note(map[Entry]bool) {}
