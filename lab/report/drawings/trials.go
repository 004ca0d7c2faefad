package drawings

import (
	"slices"

	"windtunnel/lab/report/document"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/sample"
)

// The states of a trial in the chart.
const (
	stateCounts   = "counts"
	stateGated    = "gated"
	stateReplaced = "replaced"
	stateProfiled = "profiled"
)

// stripMetrics are the metrics that a reader can choose.
var stripMetrics = []sample.Metric{
	sample.Throughput, sample.Transactions, sample.SenderCPU, sample.ReceiverCPU,
	sample.SenderCPUPerByte, sample.ReceiverCPUPerByte, sample.SenderCPUPerPacket, sample.ReceiverCPUPerPacket,
	sample.LatencyP50, sample.LatencyP99,
}

type shownMetric struct {
	key   sample.Metric
	scale quantity.Scale
}

func (b *builder) strips() document.Strips {
	var out document.Strips
	var metrics []shownMetric
	for _, m := range stripMetrics {
		var all []float64
		for i := range b.r.Scenarios {
			for j := range b.r.Scenarios[i].Samples {
				if v, ok := b.r.Scenarios[i].Samples[j].Metrics[m]; ok {
					all = append(all, v)
				}
			}
		}
		if len(all) > 0 {
			scale := quantity.ScaleOf(m, slices.Max(all))
			out.Metrics = append(out.Metrics, document.StripMetric{Name: m.Label(), Unit: scale.Unit, By: scale.By})
			metrics = append(metrics, shownMetric{m, scale})
		}
	}
	for i := range b.r.Scenarios {
		if s := &b.r.Scenarios[i]; len(s.Samples) > 0 {
			out.Rows = append(out.Rows, b.strip(s, metrics))
		}
	}
	if len(out.Metrics) == 0 {
		return document.Strips{}
	}
	return out
}

func (b *builder) strip(s *model.Scenario, metrics []shownMetric) document.Strip {
	// The script expects lists, also if every trial failed.
	out := document.Strip{ID: s.ID, Paint: b.paints[s.ID], Block: []int{}, Attempt: []int{}, State: []string{}, Why: []string{}, Failed: []string{}, Values: make([][]*float64, len(metrics))}
	for j := range out.Values {
		out.Values[j] = []*float64{}
	}
	counting := make(map[*sample.Sample]bool)
	for _, sm := range s.Counting() {
		counting[sm] = true
	}
	for i := range s.Samples {
		sm := &s.Samples[i]
		if !sm.OK() {
			out.Failed = append(out.Failed, sm.Trial()+" failed: "+sm.Failure.String())
			continue
		}
		out.Block, out.Attempt = append(out.Block, sm.Block+1), append(out.Attempt, sm.Attempt+1)
		state, why := trialState(sm, counting[sm])
		out.State, out.Why = append(out.State, state), append(out.Why, why)
		for j, m := range metrics {
			var value *float64
			if v, ok := sm.Metrics[m.key]; ok {
				rounded := digits(v, 5)
				value = &rounded
			}
			out.Values[j] = append(out.Values[j], value)
		}
	}
	for _, m := range metrics {
		out.Summary = append(out.Summary, spanOf(m.scale, s.Interval(m.key)))
	}
	return out
}

// trialState returns the state of a trial with figures, and the reason why it does not
// count or its flags.
func trialState(s *sample.Sample, counts bool) (state, why string) {
	switch {
	case s.Profiled:
		return stateProfiled, "measured with the profiler, so no figure contains it"
	case len(s.Gates) > 0:
		return stateGated, sample.GateText(s.Gates)
	case !counts:
		return stateReplaced, "a later attempt of this block counts instead"
	}
	return stateCounts, sample.GateText(s.Flags)
}
