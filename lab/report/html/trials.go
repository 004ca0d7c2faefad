package html

import (
	"slices"

	"windtunnel/lab/report/model"
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/sample"
)

// strips has the data of the chart "Every trial".
type strips struct {
	Metrics []stripMetric `json:"metrics"`
	Rows    []strip       `json:"rows"`
}

// stripMetric is a metric that the reader can choose for the chart.
type stripMetric struct {
	Name string  `json:"name"`
	Unit string  `json:"unit"`
	By   float64 `json:"by"`
	key  sample.Metric
}

// strip has the trials of one scenario, with one list for each property.
type strip struct {
	ID string `json:"id"`
	paint
	Block   []int    `json:"block"`
	Attempt []int    `json:"attempt"`
	State   []string `json:"state"`
	Why     []string `json:"why"` // the reason why a trial does not count, or the flags of a trial that counts
	// Values has the figures by metric, then by trial; nil if not measured.
	Values  [][]*float64 `json:"values"`
	Summary []*span      `json:"summary"` // by metric
	Failed  []string     `json:"failed"`  // a text for each trial without figures
}

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

func (b *builder) strips() strips {
	var out strips
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
			out.Metrics = append(out.Metrics, stripMetric{m.Label(), scale.Unit, scale.By, m})
		}
	}
	for i := range b.r.Scenarios {
		if s := &b.r.Scenarios[i]; len(s.Samples) > 0 {
			out.Rows = append(out.Rows, b.strip(s, out.Metrics))
		}
	}
	if len(out.Metrics) == 0 {
		return strips{}
	}
	return out
}

func (b *builder) strip(s *model.Scenario, metrics []stripMetric) strip {
	// The script expects lists, also if every trial failed.
	out := strip{ID: s.ID, paint: b.paints[s.ID], Block: []int{}, Attempt: []int{}, State: []string{}, Why: []string{}, Failed: []string{}, Values: make([][]*float64, len(metrics))}
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
		out.Summary = append(out.Summary, spanOf(quantity.Scale{Unit: m.Unit, By: m.By}, s.Interval(m.key)))
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
