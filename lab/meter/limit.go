package meter

import (
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

const (
	// saturated is the smallest busy share of a CPU that counts as fully used.
	// Wake-ups take the rest.
	saturated = 0.95
	// reached is the smallest share of a rate that counts as used up. Headers
	// and rounding take the rest.
	reached = 0.95
)

// Limit returns what limited the traffic; empty if nothing known did.
func Limit(sender, receiver *Delta, f Facts, w suite.Workload, fabric suite.Fabric, ms sample.Metrics) sample.Limit {
	ways := 1.0
	if w.Direction == suite.Both {
		ways = 2
	}
	switch by := busiest(sender, receiver, f); {
	case w.Kind.Stream() && w.Rate > 0 && max(ms[sample.Throughput], ms[sample.SenderThroughput]) >= reached*float64(w.Rate)*ways:
		return sample.RateLimit
	case fabric.Rate > 0 && !f.Colocated && ms[sample.FabricBits] >= reached*float64(fabric.Rate)*float64(max(fabric.Links, 1))*ways:
		return sample.LinkLimit
	case f.Unpinned: // threads move between CPUs, so a busy CPU does not show which thread is the limit
		return ""
	case by != "":
		return by
	case w.Kind == suite.TCPStream || w.Load > 0:
		return sample.WindowLimit
	case !w.Kind.Stream():
		return sample.TripLimit
	}
	return ""
}

// busiest returns the owner of the busiest CPU; empty if all CPUs had idle
// time.
func busiest(sender, receiver *Delta, f Facts) (by sample.Limit) {
	most := saturated
	look := func(d *Delta, owner sample.Limit) {
		for cpu, u := range d.CPUs {
			share := u.Busy / (d.Seconds - u.Steal)
			if share < most {
				continue
			}
			most, by = share, owner
			if f.WireCPU[cpu] > u.Busy/2 {
				by = sample.WireLimit
			}
		}
	}
	look(sender, sample.SenderLimit)
	if receiver != nil {
		look(receiver, sample.ReceiverLimit)
	}
	if f.Ports != nil {
		wire := *f.Ports
		wire.CPUs = map[int]Usage{}
		for cpu, u := range f.Ports.CPUs {
			_, near := sender.CPUs[cpu]
			far := false
			if receiver != nil {
				_, far = receiver.CPUs[cpu]
			}
			if !near && !far {
				wire.CPUs[cpu] = u
			}
		}
		look(&wire, sample.WireLimit)
	}
	return by
}
