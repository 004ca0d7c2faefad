// Package validity judges a trial. Conditions are what the machine did: whether
// the CPUs were the experiment's own and the clocks went on. Outcomes are what
// the system under test did: whether the rate was steady and the generator kept
// up. It is pure arithmetic over what was measured.
package validity

import (
	"math"

	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
	"windtunnel/lab/units"
)

// Input is what was measured of one trial. What is not known stays nil or
// absent: its gate is then not judged, which is not the same as passed.
type Input struct {
	Workload suite.Workload
	Metrics  sample.Metrics
	Series   []sample.Point
	Window   float64 // length of the meter's window, s
	Step     float64 // that the series was to have, s
	// Sides are the sender's node and the receiver's; the sender's alone where
	// both endpoints are on it.
	Sides []Side
	// Stray is the share, 0..1, of the window that each CPU spent on softirqs
	// that belongs neither to a node nor to the fabric. Empty means that there is
	// no such CPU, nil that it is not known.
	Stray map[int]float64
	// Quiet is what still moved on the fabric once the tools had ended, bits per
	// second, counted as sample.FabricBits is.
	Quiet *float64
	// ClockStep is by how much the wall clock went further than the monotonic
	// one between the window's edges, s.
	ClockStep *float64
	// Unknown says why a gate cannot be judged, in words for a person.
	Unknown map[sample.GateName]string
}

// Side is what was seen of one node.
type Side struct {
	Node string
	CPUs int
	// Readings are the times of the series' readings on the node, s since the
	// window began, in order.
	Readings []float64
	Foreign  *float64 // CPU seconds within the window, by what is outside the experiment
	// Culprit is the program that took most of Foreign, with its CPU seconds;
	// empty where it is not known.
	Culprit     string
	CulpritTook float64
}

// ForeignPercent is Foreign as a part of the node's CPUs over a window, as
// sample.SenderForeignCPU has it; ok is false where it is not known.
func (s Side) ForeignPercent(window float64) (percent float64, ok bool) {
	if s.Foreign == nil || s.CPUs <= 0 || !(window > 0) {
		return 0, false
	}
	return finite(100 * *s.Foreign / window / float64(s.CPUs))
}

// verdict collects what Judge returns.
type verdict struct {
	Input
	limits        Limits
	failed, flags []sample.Gate
	unjudged      []string
}

// Judge returns the conditions that the trial failed (failed), the outcomes that
// it failed (flags), and a line for each gate that could not be judged, which
// begins with the gate's name. A gate that does not apply (a rate that nobody
// asked for, the steadiness of transactions) is in none of them. No figure in a
// gate is NaN or infinite.
func Judge(in Input, limits Limits) (failed, flags []sample.Gate, unjudged []string) {
	v := &verdict{Input: in, limits: limits}
	gates := []struct {
		name  sample.GateName
		judge func()
	}{
		{sample.ForeignCPU, v.foreign},
		{sample.Steal, v.steal},
		{sample.StrayCPU, v.stray},
		{sample.Unsteady, v.unsteady},
		{sample.OffTarget, v.offTarget},
		{sample.StillMoving, v.stillMoving},
		{sample.ClockJump, v.clockJump},
		{sample.MachineStall, v.stall},
	}
	windowOK := in.Window > 0 && !math.IsInf(in.Window, 0)
	for _, g := range gates {
		switch reason := in.Unknown[g.name]; {
		case reason != "":
			v.skip(g.name, reason)
		case !windowOK:
			v.skip(g.name, "the length of the meter's window is not known")
		default:
			g.judge()
		}
	}
	return v.failed, v.flags, v.unjudged
}

func (v *verdict) fail(name sample.GateName, value, limit float64, unit, message string) {
	to := &v.failed
	if name.Outcome() {
		to = &v.flags
	}
	*to = append(*to, sample.Gate{Name: name, Value: value, Limit: limit, Unit: unit, Message: message})
}

func (v *verdict) skip(name sample.GateName, reason string) {
	v.unjudged = append(v.unjudged, string(name)+": "+reason)
}

// metric is a figure that is there and is a number.
func (v *verdict) metric(m sample.Metric) (float64, bool) {
	x, ok := v.Metrics[m]
	if !ok {
		return 0, false
	}
	return finite(x)
}

func finite(x float64) (float64, bool) {
	return x, units.Finite(x)
}
