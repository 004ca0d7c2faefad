package reporttest

import (
	"fmt"

	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// RigorousBlocks of the run that Rigorous returns.
const RigorousBlocks = 12

// Rigorous returns Sized(RigorousBlocks) with data for all parts of a report: a ladder of
// streams and one of request/response, five hypotheses (two hold, one is refuted, two
// are undecided), a precision of 2 %, profiled trials, and gates. In bridge/stream
// block 7 is flagged with an unsteady rate. In vxlan/stream block 2 was repeated
// after foreign CPU, and block 5 failed for steal in both attempts. geneve/stream
// failed for foreign CPU in every block. Every call returns equal values in new
// memory.
func Rigorous() (sample.Run, suite.Plan, []sample.Sample) {
	run, plan, some := Sized(RigorousBlocks)
	plan.Stop = suite.Stop{Precision: 0.02, MaxTrials: RigorousBlocks}
	plan.Scenarios = append(plan.Scenarios, scenario(geneve, stream))
	plan.Comparisons = append(plan.Comparisons, suite.Comparison{Baseline: "raw/stream", Subject: "geneve/stream"})
	plan.Ladders, plan.Hypotheses = ladders(), hypotheses()
	var samples []sample.Sample
	for _, s := range some {
		samples = append(samples, gated(s)...)
		if s.Block < 2 && s.OK() && (s.Scenario == "raw/stream" || s.Scenario == "vxlan/stream") {
			samples = append(samples, withProfiler(s))
		}
		if s.Position == 0 && s.Attempt == 0 {
			g := trial(&plan.Scenarios[len(plan.Scenarios)-1], 2*len(cells), s.Block, len(plan.Scenarios)-1)
			samples = append(samples, failing(g, foreign(20+float64(s.Block))))
		}
	}
	return run, plan, samples
}

var geneve = cell{"geneve", "geneve", "kernel Geneve behind a bridge", suite.TwoNodes, 8.7e9, 83, 60, 43_500}

// cellAt returns cells[i], or the cell of Rigorous, geneve, after the last of them.
func cellAt(i int) cell {
	if i < len(cells) {
		return cells[i]
	}
	return geneve
}

func ladders() []suite.Ladder {
	names := []string{"the host's own stack", "the bridge", "VXLAN"}
	return []suite.Ladder{
		{Title: "what a stream pays", Steps: []string{"raw/stream", "bridge/stream", "vxlan/stream"}, Names: names},
		{Title: "what a round trip pays", Steps: []string{"raw/rr", "bridge/rr", "vxlan/rr"}, Names: names},
	}
}

func hypotheses() []suite.Hypothesis {
	throughput := string(sample.Throughput)
	return []suite.Hypothesis{
		{Claim: "VXLAN leaves at least 70 % of the throughput", Metric: throughput, Baseline: "raw/stream", Subjects: []string{"vxlan/stream"}, Low: 0.7, High: 1e9, Printed: "≥ 70 %"},
		{Claim: "a bridge leaves at least 90 % of the throughput, colocated or not", Metric: throughput, Baseline: "raw/stream", Subjects: []string{"bridge/stream", "bridge-colocated/stream"}, Low: 0.9, High: 1e9, Printed: "≥ 90 %"},
		{Claim: "a bridge costs no round trip", Metric: string(sample.LatencyP50), Baseline: "raw/rr", Subjects: []string{"bridge/rr"}, Low: 0.95, High: 1.05, Printed: "1 ± 5 %"},
		{Claim: "VXLAN takes a fifth of the bridge's throughput", Metric: throughput, Baseline: "bridge/stream", Subjects: []string{"vxlan/stream"}, Low: 0.8, High: 0.82, Printed: "0.81 ± 0.01"},
		{Claim: "macvlan is as fast as raw", Metric: throughput, Baseline: "raw/stream", Subjects: []string{"macvlan/stream"}, Low: 0.95, High: 1.05, Printed: "1 ± 5 %"},
	}
}

// gated returns the attempts that the run made instead of s.
func gated(s sample.Sample) []sample.Sample {
	switch {
	case s.Scenario == "bridge/stream" && s.Block == 7:
		s.Flags = []sample.Gate{{Name: sample.Unsteady, Value: 14, Limit: 10, Unit: "%",
			Message: "the rate fell by 14 % within the window, more than the 10 % that pass"}}
	case s.Scenario == "vxlan/stream" && s.Block == 2:
		return repeated(failing(s, foreign(31)), s)
	case s.Scenario == "vxlan/stream" && s.Block == 5:
		return repeated(failing(s, steal(4.2)), failing(s, steal(3.1)))
	}
	return []sample.Sample{s}
}

func repeated(first, second sample.Sample) []sample.Sample {
	second.Attempt = first.Attempt + 1
	second.Started = second.Started.Add(second.Took)
	return []sample.Sample{first, second}
}

func failing(s sample.Sample, g sample.Gate) sample.Sample {
	s.Gates = []sample.Gate{g}
	return s
}

func foreign(percent float64) sample.Gate {
	return sample.Gate{Name: sample.ForeignCPU, Value: percent, Limit: 3, Unit: "%",
		Message: fmt.Sprintf("processes outside the experiment used %.0f %% of node b's CPUs, more than the 3 %% that pass", percent)}
}

func steal(percent float64) sample.Gate {
	return sample.Gate{Name: sample.Steal, Value: percent, Limit: 2, Unit: "%",
		Message: fmt.Sprintf("the machine's host took %.1f %% of node a's CPUs, more than the 2 %% that pass", percent)}
}

// withProfiler returns the trial as measured with the profiler: 3 % slower.
func withProfiler(s sample.Sample) sample.Sample {
	metrics := make(sample.Metrics, len(s.Metrics))
	metrics.Merge(s.Metrics)
	metrics[sample.Throughput] *= 0.97
	s.Metrics, s.Profiled = metrics, true
	s.Started = s.Started.Add(s.Took)
	return s
}
