package datapath

import (
	"fmt"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"windtunnel/vrouter/layout"
)

// Outcomes count the ends of the frames that the programs received:
// Received = Passed + Forwarded + Answered + Replicated + Dropped.
type Outcomes struct {
	Received, Passed, Forwarded, Answered, Replicated, Dropped uint64
	Decapped                                                   uint64 // frames whose outer headers XDP took off
	Replicas                                                   uint64 // copies that replication sent
}

// VifStats returns the counters of every vif that has any: bytes of Ethernet frames, and packets as on
// the wire (a superpacket counts its segments). Rx is from the workload.
func (d *Datapath) VifStats() (map[uint32]layout.VifCounters, error) {
	all := map[uint32]layout.VifCounters{}
	err := eachEntry("vif_stats", d.maps.VifStats, 0, func(id uint32, cpus []layout.VifCounters) {
		var s layout.VifCounters
		for _, c := range cpus {
			s.RxPackets += c.RxPackets
			s.RxBytes += c.RxBytes
			s.TxPackets += c.TxPackets
			s.TxBytes += c.TxBytes
		}
		if s != (layout.VifCounters{}) {
			all[id] = s
		}
	})
	return all, err
}

// VifReceived returns the number of packets that the workload of a vif has sent.
func (d *Datapath) VifReceived(id uint32) (packets uint64, err error) {
	var cpus []layout.VifCounters
	if err := d.maps.VifStats.Lookup(id, &cpus); err != nil {
		return 0, fmt.Errorf("read the counters of vif %d: %w", id, err)
	}
	for _, c := range cpus {
		packets += c.RxPackets
	}
	return packets, nil
}

// VRFStats returns the counters of every VRF that has any: packets and bytes of inner frames, by
// encapsulation. Index 0 is traffic between two vifs of this node. The further indexes are those of
// layout.Encapsulations.
func (d *Datapath) VRFStats() (map[uint32]layout.VRFCounters, error) {
	all := map[uint32]layout.VRFCounters{}
	err := eachEntry("vrf_stats", d.maps.VrfStats, 0, func(id uint32, cpus []layout.VRFCounters) {
		var s layout.VRFCounters
		for _, c := range cpus {
			for i := range s.TxPackets {
				s.TxPackets[i] += c.TxPackets[i]
				s.TxBytes[i] += c.TxBytes[i]
				s.RxPackets[i] += c.RxPackets[i]
				s.RxBytes[i] += c.RxBytes[i]
			}
		}
		if s != (layout.VRFCounters{}) {
			all[id] = s
		}
	})
	return all, err
}

// Drops returns the counters of every reason that occurred, by vif. Vif 0 is the fabric.
func (d *Datapath) Drops() (map[layout.DropKey]uint64, error) {
	return sums[layout.DropKey]("drops", d.maps.Drops)
}

// Fallbacks returns the packets that direct cannot carry, for every reason that occurred. They
// take a fallback, or are dropped if there is none.
func (d *Datapath) Fallbacks() (map[layout.FallbackKey]uint64, error) {
	return sums[layout.FallbackKey]("fallbacks", d.maps.Fallbacks)
}

// sums returns the counters of a map, summed over all CPUs.
func sums[K comparable](name string, m *ebpf.Map) (map[K]uint64, error) {
	all := map[K]uint64{}
	err := eachEntry(name, m, 0, func(k K, cpus []uint64) {
		for _, n := range cpus {
			all[k] += n
		}
	})
	return all, err
}

// Outcomes returns the counts since the maps were created.
func (d *Datapath) Outcomes() (Outcomes, error) {
	var sums layout.OutcomeCounters
	err := eachEntry("outcomes", d.maps.Outcomes, 0, func(_ uint32, cpus []layout.OutcomeCounters) {
		for _, c := range cpus {
			for i, n := range c.Count {
				sums.Count[i] += n
			}
		}
	})
	n := sums.Count
	return Outcomes{
		Received: n[0], Passed: n[1], Forwarded: n[2], Answered: n[3],
		Replicated: n[4], Dropped: n[5], Decapped: n[6], Replicas: n[7],
	}, err
}

// LearnedMTUs returns, by tunnel nexthop, the MTU of outer packets that the
// underlay's routers reported and that still counts.
func (d *Datapath) LearnedMTUs() (map[uint32]uint32, error) {
	now, err := monotonic()
	if err != nil {
		return nil, err
	}
	all := map[uint32]uint32{}
	t := table[uint32, layout.LearnedMTU]{"learned_mtus", d.maps.LearnedMtus, true}
	err = t.each(func(id uint32, v layout.LearnedMTU) {
		if v.UntilNs > now {
			all[id] = v.MTU
		}
	})
	return all, err
}

// monotonic is the clock of bpf_ktime_get_ns.
func monotonic() (uint64, error) {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		return 0, fmt.Errorf("read the monotonic clock: %w", err)
	}
	return uint64(t.Nano()), nil
}
