package validity

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"windtunnel/lab/sample"
)

// sideNames and stealMetrics have the order of Input.Sides.
var (
	sideNames    = [...]string{"sender", "receiver"}
	stealMetrics = [...]sample.Metric{sample.SenderStealCPU, sample.ReceiverStealCPU}
)

func (v *verdict) sides() []Side { return v.Sides[:min(len(v.Sides), len(sideNames))] }

// where names a node for a message.
func (v *verdict) where(i int) string {
	if len(v.Sides) == 1 {
		return fmt.Sprintf("node %s (both sides)", v.Sides[i].Node)
	}
	return fmt.Sprintf("node %s (%s)", v.Sides[i].Node, sideNames[i])
}

// worst returns the side with the highest percentage above a limit (−1: none), and
// whether the percentage of a side is unknown.
func (v *verdict) worst(limit float64, percent func(side int) (float64, bool)) (worst int, most float64, unknown bool) {
	worst, unknown = -1, len(v.Sides) == 0
	for i := range v.sides() {
		switch p, ok := percent(i); {
		case !ok:
			unknown = true
		case p > max(limit, most):
			worst, most = i, p
		}
	}
	return worst, most, unknown
}

// foreign fails if the foreign CPU time of a side is above the limit. It reports the
// side with the higher figure.
func (v *verdict) foreign() {
	worst, most, unknown := v.worst(v.limits.Foreign, func(i int) (float64, bool) { return v.Sides[i].ForeignPercent(v.Window) })
	if worst < 0 {
		if unknown {
			v.skip(sample.ForeignCPU, "the CPU time of other programs is not known")
		}
		return
	}
	v.fail(sample.ForeignCPU, most, v.limits.Foreign, "%", fmt.Sprintf(
		"programs outside the experiment used %.1f %% of the CPUs of %s%s; the limit is %.3g %%: end them, or keep them off these CPUs (taskset, cpusets)",
		most, v.where(worst), v.culprit(v.Sides[worst]), v.limits.Foreign))
	v.failed[len(v.failed)-1].Culprit = v.Sides[worst].Culprit
}

func (v *verdict) culprit(s Side) string {
	took, ok := finite(100 * s.CulpritTook / v.Window / float64(s.CPUs))
	if s.Culprit == "" || !ok {
		return ""
	}
	return fmt.Sprintf(", most of it %s (%.1f %%)", s.Culprit, took)
}

func (v *verdict) steal() {
	worst, most, unknown := v.worst(v.limits.Steal, func(i int) (float64, bool) { return v.metric(stealMetrics[i]) })
	if worst < 0 {
		if unknown {
			v.skip(sample.Steal, "stolen CPU time was not metered")
		}
		return
	}
	v.fail(sample.Steal, most, v.limits.Steal, "%", fmt.Sprintf(
		"the host of this virtual machine ran others for %.1f %% of the time of the CPUs of %s; the limit is %.3g %%: give the machine CPUs of its own, or try at another hour",
		most, v.where(worst), v.limits.Steal))
}

// quota fails if the CPU quota of a control group stopped the processes of a side.
func (v *verdict) quota() {
	worst, most, _ := v.worst(v.limits.Quota, func(i int) (float64, bool) {
		s := v.Sides[i]
		if s.Throttled == 0 {
			return 0, true
		}
		return finite(100 * float64(s.Throttled) / float64(max(s.Throttled, s.Periods)))
	})
	if worst < 0 {
		return
	}
	s := v.Sides[worst]
	v.fail(sample.CPUQuota, most, v.limits.Quota, "%", fmt.Sprintf(
		"the CPU quota of control group %s stopped processes of %s in %d of %d periods; the limit is %.3g %%: remove the quota (cpu.max, cpu.cfs_quota_us), or run outside the group",
		s.Group, v.where(worst), s.Throttled, max(s.Throttled, s.Periods), v.limits.Quota))
}

func (v *verdict) stray() {
	if v.Stray == nil {
		v.skip(sample.StrayCPU, "the CPUs that belong to no node were not metered")
		return
	}
	most, full := 0.0, []string(nil)
	unknown := false
	for _, cpu := range slices.Sorted(maps.Keys(v.Stray)) {
		percent, ok := finite(100 * v.Stray[cpu])
		if !ok {
			unknown = true
			continue
		}
		if percent > v.limits.Stray {
			full = append(full, fmt.Sprintf("CPU %d for %.0f %%", cpu, percent))
			most = max(most, percent)
		}
	}
	switch {
	case len(full) > 0:
		v.fail(sample.StrayCPU, most, v.limits.Stray, "%", fmt.Sprintf(
			"softirqs, which carry packets, had %s of the window, CPUs that belong to neither node nor fabric; the limit is %.3g %%: keep other traffic off this machine, and check whether interrupts or RPS send the nodes' packets to these CPUs",
			strings.Join(full, " and "), v.limits.Stray))
	case unknown:
		v.skip(sample.StrayCPU, "the softirq time of a CPU is not known")
	}
}
