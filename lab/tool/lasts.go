package tool

import (
	"time"

	"windtunnel/lab/suite"
)

// lasting is a tool that runs longer than warm-up, duration and cool-down together.
type lasting interface {
	// Lasts returns the duration of the tool, including the wait before its traffic.
	Lasts(t suite.Timing) time.Duration
}

// Traffic maps the ID of a scenario to the run time of its tool in a trial. It omits
// tools that run exactly as long as the timing.
func Traffic(plan *suite.Plan) map[string]time.Duration {
	times := map[string]time.Duration{}
	for _, sc := range plan.Scenarios {
		tl, _ := ByName(sc.Tool)
		if l, ok := tl.(lasting); ok {
			times[sc.ID] = l.Lasts(sc.Timing)
		}
	}
	return times
}

// roundedRun is the run time of a tool that rounds each part of the timing up to whole
// seconds.
func roundedRun(t suite.Timing) time.Duration {
	_, to := roundedSpan(t)
	return to + time.Duration(ceilSeconds(t.Cooldown))*time.Second
}

func (Iperf3) Lasts(t suite.Timing) time.Duration        { return wholeRun(t) }
func (Netperf) Lasts(t suite.Timing) time.Duration       { return wholeRun(t) }
func (Qperf) Lasts(t suite.Timing) time.Duration         { return wholeRun(t) }
func (NTttcp) Lasts(t suite.Timing) time.Duration        { return roundedRun(t) }
func (BuiltinNTttcp) Lasts(t suite.Timing) time.Duration { return roundedRun(t) }

// Lasts: the client sleeps two seconds before its traffic begins.
func (Sockperf) Lasts(t suite.Timing) time.Duration { return 2*time.Second + wholeRun(t) }
