package meter

import (
	"cmp"
	"slices"

	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// SeriesSide is one node's light readings, with the facts to interpret them.
type SeriesSide struct {
	Lights []Light
	CPUs   []int // of the node, in the order of the readings
}

// Points joins the series of both nodes, which share one CLOCK_MONOTONIC, into
// the points of a sample. origin is the Mono of the reading at the window's
// start. receiver is nil if both endpoints are on one node. wire is the series
// of the fabric's clock; nil if it has none.
//
// Bits are what the series devices of the data-receiving side received, or of
// both sides for traffic in both directions, as the devices count them: a veth
// that polls leaves out the Ethernet header. The fabric's work is subtracted
// from the CPU figures.
func Points(sender SeriesSide, receiver *SeriesSide, wire []WireReading, origin int64, f Facts) []sample.Point {
	near := steps(sender, wire)
	var far []step
	if receiver != nil {
		far = steps(*receiver, wire)
	}
	points := make([]sample.Point, 0, len(near))
	k := 0
	for _, s := range near {
		p := sample.Point{At: float64(s.end-origin) / 1e9, Seconds: s.seconds, SenderCPU: s.busy, Steal: s.steal}
		var other step
		if len(far) > 0 {
			k = nearest(far, k, s.end)
			other = far[k]
			p.ReceiverCPU, p.Steal = other.busy, max(p.Steal, other.steal)
		}
		if f.Unpinned {
			p.SenderCPU, p.ReceiverCPU = 0, 0
		}
		p.Bits = direction(s, other, receiver != nil, f)
		points = append(points, p)
	}
	return points
}

// step is the difference of two light readings.
type step struct {
	end     int64   // CLOCK_MONOTONIC
	seconds float64 // length
	busy    float64 // percent of the node's CPUs, without the fabric's work
	steal   float64 // percent of the node's CPUs
	bits    float64 // received by the series devices, per second
}

// steps returns the differences of successive readings. It leaves out pairs
// that cannot be compared: a CPU was offline, or a device was replaced.
func steps(side SeriesSide, wire []WireReading) []step {
	var list []step
	for i := 1; i < len(side.Lights); i++ {
		a, b := side.Lights[i-1], side.Lights[i]
		s, ok := between(a, b)
		if !ok {
			continue
		}
		used := 0.0
		for _, cpu := range side.CPUs {
			used += 100 * (usedAt(wire, cpu, b.Mono) - usedAt(wire, cpu, a.Mono)) / s.seconds / float64(len(side.CPUs))
		}
		if s.steal > 0 {
			used *= s.busy / (s.busy + s.steal) // as in Usage.without
		}
		s.busy = max(s.busy-used, 0)
		list = append(list, s)
	}
	return list
}

func between(a, b Light) (s step, ok bool) {
	length := b.Mono - a.Mono
	if length <= 0 || len(a.Idle) != len(b.Idle) || len(a.Traffic) != len(b.Traffic) || len(b.Idle) == 0 {
		return s, false
	}
	s.end, s.seconds = b.Mono, float64(length)/1e9
	share := func(ns int64) float64 {
		return 100 * float64(min(max(ns, 0), length)) / float64(length) / float64(len(b.Idle))
	}
	for i := range b.Idle {
		if a.Idle[i] < 0 || b.Idle[i] < 0 {
			return s, false
		}
		s.busy += 100/float64(len(b.Idle)) - share(b.Idle[i]-a.Idle[i])
	}
	for i := range min(len(a.Steal), len(b.Steal)) {
		s.steal += share(b.Steal[i] - a.Steal[i])
	}
	for i := range b.Traffic {
		if b.Traffic[i].RxBytes < a.Traffic[i].RxBytes {
			return s, false
		}
		s.bits += 8 * float64(b.Traffic[i].RxBytes-a.Traffic[i].RxBytes) / s.seconds
	}
	return s, true
}

// nearest returns the step, from step k on, that ends closest to a moment.
func nearest(list []step, k int, end int64) int {
	distance := func(i int) int64 {
		d := list[i].end - end
		return max(d, -d)
	}
	for k+1 < len(list) && distance(k+1) <= distance(k) {
		k++
	}
	return k
}

func direction(near, far step, two bool, f Facts) float64 {
	switch {
	case !two:
		return near.bits
	case f.Direction == suite.Both:
		return near.bits + far.bits
	case f.Direction == suite.Reverse:
		return near.bits
	}
	return far.bits
}

// WireReading is a reading of the fabric's clock.
type WireReading struct {
	Mono int64           // CLOCK_MONOTONIC
	Used map[int]float64 // CPU seconds of the fabric's work so far, by CPU
}

// usedAt returns the time that the fabric had used on a CPU at a moment, by
// linear interpolation between readings.
func usedAt(wire []WireReading, cpu int, mono int64) float64 {
	i, _ := slices.BinarySearchFunc(wire, mono, func(r WireReading, at int64) int { return cmp.Compare(r.Mono, at) })
	switch {
	case len(wire) == 0:
		return 0
	case i == 0:
		return wire[0].Used[cpu]
	case i == len(wire):
		return wire[i-1].Used[cpu]
	}
	a, b := wire[i-1], wire[i]
	part := float64(mono-a.Mono) / float64(b.Mono-a.Mono)
	return a.Used[cpu] + part*(b.Used[cpu]-a.Used[cpu])
}

// Moved is the rate at which the series devices of all nodes received between
// two light readings, in bits per second with all headers. Each node has one
// reading before and one after. ok is false if the readings cannot be compared.
func Moved(before, after []Light) (bits float64, ok bool) {
	if len(before) != len(after) {
		return 0, false
	}
	for i := range before {
		s, ok := between(before[i], after[i])
		if !ok {
			return 0, false
		}
		bits += s.bits
	}
	return bits, len(before) > 0
}
