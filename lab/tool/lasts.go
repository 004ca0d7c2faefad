package tool

import (
	"time"

	"windtunnel/lab/suite"
)

// lasting is implemented by a tool whose trial takes another time than the timing.
type lasting interface {
	// Lasts returns the duration of the tool, including the wait before its traffic.
	Lasts(t suite.Timing) time.Duration
}

// Traffic returns the duration of each scenario's tool in a trial, by scenario, if it
// differs from the timing's total.
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

// inRoundedParts is for a tool that takes each part of the timing in whole
// seconds.
func inRoundedParts(t suite.Timing) time.Duration {
	_, to := roundedSpan(t)
	return to + time.Duration(ceilSeconds(t.Cooldown))*time.Second
}

func (Iperf3) Lasts(t suite.Timing) time.Duration        { return wholeRun(t) }
func (Netperf) Lasts(t suite.Timing) time.Duration       { return wholeRun(t) }
func (Qperf) Lasts(t suite.Timing) time.Duration         { return wholeRun(t) }
func (NTttcp) Lasts(t suite.Timing) time.Duration        { return inRoundedParts(t) }
func (BuiltinNTttcp) Lasts(t suite.Timing) time.Duration { return inRoundedParts(t) }

// Lasts: the client sleeps two seconds before its traffic begins.
func (Sockperf) Lasts(t suite.Timing) time.Duration { return 2*time.Second + wholeRun(t) }
