package drawings

import (
	"math"
	"slices"

	"windtunnel/lab/report/document"
	"windtunnel/lab/sample"
)

// series returns the time series of the trials that the page keeps.
func (b *builder) series() []document.Series {
	var list []document.Series
	for i := range b.r.Scenarios {
		sc := &b.r.Scenarios[i]
		s := document.Series{ID: sc.ID, Paint: b.paints[sc.ID]}
		for _, sm := range sc.Counting() {
			if b.kept.samples[sm] && len(sm.Series) > 0 {
				s.Trials = append(s.Trials, timeSeries(sm, sm == b.kept.median[sc.ID]))
			}
		}
		if len(s.Trials) > 0 {
			list = append(list, s)
		}
	}
	return list
}

func timeSeries(s *sample.Sample, median bool) document.TimeSeries {
	t := document.TimeSeries{Block: s.Block + 1, Median: median, Window: s.Metrics[sample.WindowSeconds]}
	for _, p := range s.Series {
		if p.LeftOut == "" {
			continue
		}
		from, to := digits(p.At-p.Seconds, 3), digits(p.At, 3)
		if n := len(t.Out); n > 0 && from-t.Out[n-1][1] < p.Seconds/10 {
			t.Out[n-1][1] = to
		} else {
			t.Out = append(t.Out, [2]float64{from, to})
		}
	}
	_, sender := s.Metrics[sample.SenderCPU]
	_, receiver := s.Metrics[sample.ReceiverCPU]
	for _, p := range steps(s.Series, mostSteps) {
		t.At = append(t.At, math.Round(p.At*1000)/1000)
		t.Bits = append(t.Bits, digits(p.Bits, 4))
		// A side that the trial did not measure has zeros in every point.
		if sender {
			t.CPU[0] = append(t.CPU[0], digits(p.SenderCPU, 3))
		}
		if receiver {
			t.CPU[1] = append(t.CPU[1], digits(p.ReceiverCPU, 3))
		}
	}
	if slices.ContainsFunc(s.Series, func(p sample.Point) bool { return p.Latency > 0 }) {
		t.Latency = make([][]float64, 2)
		for _, p := range steps(s.Series, mostSteps) {
			t.Latency[0] = append(t.Latency[0], digits(p.Latency, 3))
			t.Latency[1] = append(t.Latency[1], digits(p.LatencyMax, 3))
		}
	}
	return t
}

// allSeries are the time series of a page.
type allSeries []document.Series

// RoundTrips reports whether a trial has round trips over time.
func (all allSeries) RoundTrips() bool {
	return slices.ContainsFunc(all, func(s document.Series) bool {
		return slices.ContainsFunc(s.Trials, func(t document.TimeSeries) bool { return t.Latency != nil })
	})
}
