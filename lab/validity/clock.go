package validity

import (
	"fmt"
	"math"

	"windtunnel/lab/sample"
)

func (v *verdict) clockJump() {
	if v.ClockStep == nil {
		v.skip(sample.ClockJump, "the wall clock was not read")
		return
	}
	ms, ok := finite(1000 * *v.ClockStep)
	if !ok {
		v.skip(sample.ClockJump, "the wall clock is not known")
		return
	}
	if math.Abs(ms) <= v.limits.ClockStep {
		return
	}
	way := "forward"
	if ms < 0 {
		way = "back"
	}
	v.fail(sample.ClockJump, math.Abs(ms), v.limits.ClockStep, "ms", fmt.Sprintf(
		"the wall clock was set %s by %.1f ms within the window, and a tool may time its traffic by it; the limit is %.3g ms: wait until the time service has settled, or let it slew the clock and not step it",
		way, math.Abs(ms), v.limits.ClockStep))
}

// stall fails if a reading of the series was too late on a node.
func (v *verdict) stall() {
	worst, most, unknown := v.worst(v.limits.Stall, func(i int) (float64, bool) {
		ms, _, ok := v.late(v.Sides[i])
		return ms, ok
	})
	if worst < 0 {
		if unknown {
			v.skip(sample.MachineStall, "the times of the series' readings within the window are not known")
		}
		return
	}
	_, at, _ := v.late(v.Sides[worst])
	v.fail(sample.MachineStall, most, v.limits.Stall, "ms", fmt.Sprintf(
		"%s stood still for %.0f ms, %.1f s into the window (a reading of the series came that late); the limit is %.3g ms: give a virtual machine CPUs of its own, and end processes that run at a higher priority",
		v.where(worst), most, at, v.limits.Stall))
}

// late returns the longest delay of a side's readings, in ms, and the time of the
// reading before it. ok is false if no step between readings lies within the
// window.
func (v *verdict) late(s Side) (ms, at float64, ok bool) {
	for i := 1; i < len(s.Readings); i++ {
		before, now := s.Readings[i-1], s.Readings[i]
		by, known := finite(now - before - v.Step)
		if !known || v.Step <= 0 || now <= 0 || before >= v.Window {
			continue
		}
		if by, known = finite(math.Round(1e6*by) / 1e3); !known {
			continue
		}
		ok = true
		if by > ms {
			ms, at = by, before
		}
	}
	return ms, at, ok
}
