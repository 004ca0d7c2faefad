package meter

import (
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// SeriesSide is one node's light readings and what is needed to read them.
type SeriesSide struct {
	Lights []Light
	CPUs   []int // of the node, in the order of the readings
}

// Points joins the series of both nodes, which share one CLOCK_MONOTONIC, into
// the points of a sample; origin is the reading's Mono at which the window
// begins. receiver is nil where both endpoints are on one node.
//
// Bits, as the devices count them (a veth that polls leaves out the Ethernet
// header), are what the series devices of the data-receiving side received (of
// both sides where data goes both ways). The fabric's own work, known for the
// whole window only, is taken off each step in proportion to the bits that
// passed in it.
func Points(sender SeriesSide, receiver *SeriesSide, origin int64, f Facts, window float64) []sample.Point {
	near := steps(sender)
	var far []step
	if receiver != nil {
		far = steps(*receiver)
	}
	points := make([]sample.Point, 0, len(near))
	k, inWindow := 0, 0.0
	for _, s := range near {
		p := sample.Point{At: float64(s.end-origin) / 1e9, SenderCPU: s.busy}
		var other step
		if len(far) > 0 {
			k = nearest(far, k, s.end)
			other = far[k]
			p.ReceiverCPU = other.busy
		}
		p.Bits = direction(s, other, receiver != nil, f)
		if p.At > 0 && p.At <= window {
			inWindow += p.Bits * s.seconds
		}
		points = append(points, p)
	}
	if f.WireCPU != nil && inWindow > 0 {
		for i := range points {
			share := points[i].Bits / inWindow
			points[i].SenderCPU = lessWire(points[i].SenderCPU, sender.CPUs, f.WireCPU, share)
			if receiver != nil {
				points[i].ReceiverCPU = lessWire(points[i].ReceiverCPU, receiver.CPUs, f.WireCPU, share)
			}
		}
	}
	return points
}

// step is what happened between two light readings.
type step struct {
	end     int64   // CLOCK_MONOTONIC
	seconds float64 // length
	busy    float64 // percent of the node's CPUs
	bits    float64 // received by the series devices, per second
}

// steps leaves out pairs that cannot be compared: a CPU that was offline, a
// device that was made anew.
func steps(side SeriesSide) []step {
	var list []step
	for i := 1; i < len(side.Lights); i++ {
		if s, ok := between(side.Lights[i-1], side.Lights[i]); ok {
			list = append(list, s)
		}
	}
	return list
}

func between(a, b Light) (s step, ok bool) {
	length := b.Mono - a.Mono
	if length <= 0 || len(a.Idle) != len(b.Idle) || len(a.Traffic) != len(b.Traffic) || len(b.Idle) == 0 {
		return s, false
	}
	s.end, s.seconds = b.Mono, float64(length)/1e9
	for i := range b.Idle {
		if a.Idle[i] < 0 || b.Idle[i] < 0 {
			return s, false
		}
		idle := min(max(b.Idle[i]-a.Idle[i], 0), length)
		s.busy += 100 * float64(length-idle) / float64(length) / float64(len(b.Idle))
	}
	for i := range b.Traffic {
		if b.Traffic[i].RxBytes < a.Traffic[i].RxBytes {
			return s, false
		}
		s.bits += 8 * float64(b.Traffic[i].RxBytes-a.Traffic[i].RxBytes) / s.seconds
	}
	return s, true
}

// nearest finds the step that ends closest to a moment, from step k on.
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

// lessWire takes the fabric's work off a step. share is the step's bits per
// second as a part of all bits of the window, so that the wire's seconds times
// share are the wire's cores in the step.
func lessWire(percent float64, cpus []int, wire map[int]float64, share float64) float64 {
	if len(cpus) == 0 {
		return percent
	}
	for _, c := range cpus {
		percent -= 100 * wire[c] * share / float64(len(cpus))
	}
	return max(percent, 0)
}
