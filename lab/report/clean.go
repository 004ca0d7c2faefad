package report

import (
	"math"
	"slices"

	"windtunnel/lab/sample"
)

// withoutOutputs copies samples for the report: without the tools' raw text,
// and without what is not a finite number, for which JSON has no form.
func withoutOutputs(samples []*sample.Sample) []sample.Sample {
	list := make([]sample.Sample, len(samples))
	for i, s := range samples {
		list[i] = *s
		list[i].Outputs = nil
		list[i].Metrics = cleanMetrics(s.Metrics)
		list[i].Series = cleanSeries(s.Series)
		list[i].Gates, list[i].Flags = cleanGates(s.Gates), cleanGates(s.Flags)
	}
	return list
}

// cleanMetrics returns ms itself where it is clean already.
func cleanMetrics(ms sample.Metrics) sample.Metrics {
	clean := true
	for _, v := range ms {
		clean = clean && finite(v)
	}
	if clean {
		return ms
	}
	kept := make(sample.Metrics, len(ms))
	for m, v := range ms {
		if finite(v) {
			kept[m] = v
		}
	}
	return kept
}

func cleanSeries(points []sample.Point) []sample.Point {
	dirty := func(p sample.Point) bool {
		return !finite(p.At) || !finite(p.Bits) || !finite(p.SenderCPU) || !finite(p.ReceiverCPU)
	}
	if !slices.ContainsFunc(points, dirty) {
		return points
	}
	return slices.DeleteFunc(slices.Clone(points), dirty)
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// cleanGates returns gates itself where it is clean already. A figure that is
// none is left out; the message stays.
func cleanGates(gates []sample.Gate) []sample.Gate {
	dirty := func(g sample.Gate) bool { return !finite(g.Value) || !finite(g.Limit) }
	if !slices.ContainsFunc(gates, dirty) {
		return gates
	}
	gates = slices.Clone(gates)
	for i := range gates {
		if dirty(gates[i]) {
			gates[i].Value, gates[i].Limit, gates[i].Unit = 0, 0, ""
		}
	}
	return gates
}
