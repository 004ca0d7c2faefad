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
		"the wall clock was set %s by %.1f ms within the window, which tools may go by; the limit is %.3g ms: let the time service settle, or slew instead of stepping",
		way, math.Abs(ms), v.limits.ClockStep))
}

// stall finds steps of the series that came late.
func (v *verdict) stall() {
	if v.Step <= 0 || math.IsNaN(v.Step) || math.IsInf(v.Step, 0) {
		v.skip(sample.MachineStall, "the interval of the series is not known")
		return
	}
	late, at, steps := 0.0, 0.0, 0
	for i := 1; i < len(v.Series); i++ {
		before, now := v.Series[i-1].At, v.Series[i].At
		if !(now > 0 && before < v.Window) {
			continue
		}
		steps++
		if by, ok := finite(now - before - v.Step); ok && by > late {
			late, at = by, before
		}
	}
	if steps == 0 {
		v.skip(sample.MachineStall, "no step of the series lies within the window")
		return
	}
	if 1000*late < v.limits.Stall-1e-6 {
		return
	}
	v.fail(sample.MachineStall, 1000*late, v.limits.Stall, "ms", fmt.Sprintf(
		"the machine stood still for %.0f ms, %.1f s into the window (a step of the series came that late); the limit is %.3g ms: a virtual machine needs CPUs of its own, and nothing may run at a higher priority",
		1000*late, at, v.limits.Stall))
}
