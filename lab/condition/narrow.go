package condition

import (
	lists "slices"

	"windtunnel/lab/sample"
	"windtunnel/lab/stats"
)

// Inside returns the slices of a series that lie completely within the window.
// The window begins at time 0 and lasts window seconds.
func Inside(points []sample.Point, window float64) []sample.Point {
	const rounding = 1e-3 // s
	from, to := 0, 0
	for i, p := range points {
		if p.At-p.Seconds < -rounding {
			from = i + 1
		}
		if p.At <= window+rounding {
			to = i + 1
		}
	}
	return points[from:max(from, to)]
}

// Narrow changes the figures of a whole window to the figures of the kept slices, which
// are the slices without LeftOut. slices are all slices of the window. Rates are multiplied
// by the mean of the kept slices and divided by the mean of all. Each node's CPU becomes
// the CPU of the kept slices: while the host takes CPUs away, the fabric's clock
// continues, and the window's CPU time is wrong. Counts (bytes, retransmits, drops) and
// latencies do not change.
func Narrow(ms sample.Metrics, slices []sample.Point) {
	all, kept := totals(slices, false), totals(slices, true)
	if all.seconds == 0 || kept.seconds == 0 {
		return
	}
	ms.Set(sample.KeptSlices, kept.seconds/all.seconds)
	distances := readings(slices, func(p sample.Point) []float64 { return []float64{p.CPUDistance} })
	setMedian(ms, sample.CPUDistance, distances)
	if len(distances) > 0 {
		ms.Set(sample.CPUDistanceLow, lists.Min(distances))
		ms.Set(sample.CPUDistanceHigh, lists.Max(distances))
	}
	setMedian(ms, sample.MemoryCopy, readings(slices, func(p sample.Point) []float64 {
		return []float64{p.SenderMemoryCopy, p.ReceiverMemoryCopy}
	}))
	if kept.seconds == all.seconds {
		return
	}
	if all.steal > 0 && kept.steal == 0 {
		scale(ms, 0, sample.SenderStealCPU, sample.ReceiverStealCPU)
	}
	Scale(ms, quotient(kept.bits/kept.seconds, all.bits/all.seconds),
		quotient(kept.sender/kept.seconds, ms[sample.SenderCPU]), quotient(kept.receiver/kept.seconds, ms[sample.ReceiverCPU]))
}

// Scale multiplies a trial's rates by bits, the sender's CPU figures by sender, and the receiver's by receiver. It does
// not change transactions per second if their pace is fixed. It does not change them beside a load either, because bits
// is then the factor of the load's throughput.
func Scale(ms sample.Metrics, bits, sender, receiver float64) {
	scale(ms, bits, sample.Throughput, sample.HostThroughput, sample.SenderThroughput, sample.ReceiverThroughput, sample.ForwardThroughput, sample.ReverseThroughput,
		sample.LoadThroughput, sample.DatagramsSent, sample.DatagramsReceived, sample.PacketsPerSecond, sample.FabricBits, sample.FabricGoodput)
	_, paced := ms[sample.OfferedRequests]
	if _, loaded := ms[sample.LoadThroughput]; !loaded && !paced {
		scale(ms, bits, sample.Transactions)
	}
	scale(ms, sender, sample.SenderCPU, sample.SenderCores, sample.SenderUserCPU, sample.SenderSystemCPU, sample.SenderSoftirqCPU, sample.SenderIRQCPU,
		sample.SenderToolCores, sample.SenderGuestCores, sample.SenderNetworkCores)
	scale(ms, sender/bits, sample.SenderCPUPerByte, sample.SenderCPUPerPacket)
	scale(ms, receiver, sample.ReceiverCPU, sample.ReceiverCores, sample.ReceiverUserCPU, sample.ReceiverSystemCPU, sample.ReceiverSoftirqCPU, sample.ReceiverIRQCPU,
		sample.ReceiverToolCores, sample.ReceiverGuestCores, sample.ReceiverNetworkCores)
	scale(ms, receiver/bits, sample.ReceiverCPUPerByte, sample.ReceiverCPUPerPacket)
	if ms[sample.Capacity] > 0 { // scaling is not enough: the other side can now be the busier one
		ms.SetCapacity()
	}
}

func scale(ms sample.Metrics, by float64, metrics ...sample.Metric) {
	for _, m := range metrics {
		if v, ok := ms[m]; ok {
			ms[m] = v * by
		}
	}
}

// total has sums over slices. Bits and CPU are weighted by the slices' lengths.
type total struct{ seconds, bits, sender, receiver, steal float64 }

func totals(slices []sample.Point, keptOnly bool) (t total) {
	for _, p := range slices {
		if keptOnly && p.LeftOut != "" {
			continue
		}
		t.seconds += p.Seconds
		t.bits += p.Bits * p.Seconds
		t.sender += p.SenderCPU * p.Seconds
		t.receiver += p.ReceiverCPU * p.Seconds
		t.steal += p.Steal * p.Seconds
	}
	return t
}

// quotient returns kept / all, or 1 where there is nothing to divide by.
func quotient(kept, all float64) float64 {
	if kept <= 0 || all <= 0 {
		return 1
	}
	return kept / all
}

// readings lists the readings in the slices that the figures do not leave out.
func readings(slices []sample.Point, of func(sample.Point) []float64) (values []float64) {
	for _, p := range slices {
		for _, v := range of(p) {
			if p.LeftOut == "" && v > 0 {
				values = append(values, v)
			}
		}
	}
	return values
}

// setMedian sets a metric to the median of values. It does nothing without values.
func setMedian(ms sample.Metrics, m sample.Metric, values []float64) {
	if v, ok, err := stats.Median(values); ok && err == nil {
		ms.Set(m, v)
	}
}
