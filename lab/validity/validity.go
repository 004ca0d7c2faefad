// Package validity judges a trial. Conditions depend on the machine: CPU time of
// foreign programs, steal, clocks. Outcomes depend on the system under test: a
// steady rate, the requested rate. The package does no I/O.
package validity

import (
	"math"

	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
	"windtunnel/lab/units"
)

// Input holds the measurements of one trial. Unknown measurements are nil or absent,
// and Judge then does not judge their gates.
type Input struct {
	Workload suite.Workload
	Metrics  sample.Metrics
	Series   []sample.Point
	Window   float64 // length of the meter's window, s
	Step     float64 // requested interval of the series, s
	// Sides are the sender's node and the receiver's; the sender's alone if both
	// endpoints are on it.
	Sides []Side
	// Stray is the share, 0..1, of the window that each CPU spent on softirqs
	// that belongs neither to a node nor to the fabric. Empty means that there is
	// no such CPU, nil that it is not known.
	Stray map[int]float64
	// Quiet is the traffic on the fabric after the tools have ended, in bits per
	// second. It is counted in the same way as sample.FabricBits.
	Quiet *float64
	// ClockStep is how far the wall clock advanced more than the monotonic clock within
	// the window, s.
	ClockStep *float64
	// Unknown is the reason, in words for a person, why a gate cannot be judged.
	Unknown map[sample.GateName]string
}

// Side holds the measurements of one node.
type Side struct {
	Node string
	CPUs int
	// Readings are the times of the series' readings on the node, s since the
	// window began, in order.
	Readings []float64
	Foreign  *float64 // CPU seconds within the window of programs outside the experiment
	// Culprit is the program with the largest part of Foreign, and CulpritTook its
	// CPU seconds; empty if unknown.
	Culprit     string
	CulpritTook float64
	// Periods counts the periods of a control group's CPU quota within the window, and
	// Throttled those in which the kernel stopped the group's processes.
	Group              string
	Periods, Throttled uint64
}

// ForeignPercent returns Foreign as a percentage of the node's CPUs over a window, as
// in sample.SenderForeignCPU; ok is false if Foreign is unknown.
func (s Side) ForeignPercent(window float64) (percent float64, ok bool) {
	if s.Foreign == nil || s.CPUs <= 0 || !(window > 0) {
		return 0, false
	}
	return finite(100 * *s.Foreign / window / float64(s.CPUs))
}

// verdict collects the results of Judge.
type verdict struct {
	Input
	limits        Limits
	failed, flags []sample.Gate
	unjudged      []string
}

// Judge returns the conditions that the trial failed (failed), the outcomes that
// it failed (flags), and a line for each gate that could not be judged, which
// begins with the gate's name. A gate that does not apply (a rate without
// a target, the steadiness of transactions) is in none of them. No figure in a
// gate is NaN or infinite.
func Judge(in Input, limits Limits) (failed, flags []sample.Gate, unjudged []string) {
	v := &verdict{Input: in, limits: limits}
	gates := []struct {
		name  sample.GateName
		judge func()
	}{
		{sample.ForeignCPU, v.foreign},
		{sample.Steal, v.steal},
		{sample.CPUQuota, v.quota},
		{sample.StrayCPU, v.stray},
		{sample.Unsteady, v.unsteady},
		{sample.OffTarget, v.offTarget},
		{sample.StillMoving, v.stillMoving},
		{sample.PacketSize, v.packetSize},
		{sample.WrongDSCP, v.wrongDSCP},
		{sample.AboveLoss, v.aboveLoss},
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

// metric returns a metric; ok is false if it is absent or not finite.
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
