package drawings

import (
	"fmt"
	"math"
	"slices"

	"windtunnel/lab/report/model"
	"windtunnel/lab/sample"
)

const (
	// mostTrials limits the trials of one scenario whose time series the page keeps.
	mostTrials = 12
	// mostPoints limits the points of all series together, so that the page stays
	// small enough to send.
	mostPoints = 40_000
	// mostSteps limits the points of one trial. It is larger than the chart's width in
	// pixels.
	mostSteps = 1200
)

// kept has the trials whose time series and counters the page keeps.
type kept struct {
	samples map[*sample.Sample]bool
	median  map[string]*sample.Sample // by scenario: the trial nearest the median
	// Left is a text for readers about omitted time series; "" if all are kept.
	Left string
}

// keep chooses the trials whose time series and counters the page keeps: the median trial
// of every scenario, and as many others as the limits allow, spread over the run.
func keep(r *model.Report) kept {
	k := kept{samples: make(map[*sample.Sample]bool), median: make(map[string]*sample.Sample)}
	series, points := 0, 0
	for i := range r.Scenarios {
		for j := range r.Scenarios[i].Samples {
			if s := &r.Scenarios[i].Samples[j]; len(s.Series) > 0 {
				series++
				points += min(len(s.Series), mostSteps)
			}
		}
	}
	room := mostTrials
	if series > 0 && len(r.Scenarios) > 0 {
		each := max(1, points/series)
		room = min(room, max(1, mostPoints/each/len(r.Scenarios)))
	}
	whole, total := 0, 0
	for i := range r.Scenarios {
		row := &r.Scenarios[i]
		ok := row.Counting()
		total += len(ok)
		k.median[row.ID] = medianTrial(row, ok)
		for _, s := range spread(ok, k.median[row.ID], room) {
			k.samples[s] = true
			whole++
		}
	}
	if whole < total {
		k.Left = fmt.Sprintf("To keep this page small it holds the time series and per-hop counters of %d of %d trials: of each scenario the median one and up to %d spread over the run. Figures and points are of all trials.", whole, total, room)
	}
	return k
}

// medianTrial returns the trial whose main figure is nearest the scenario's median.
// Without a figure it returns the first trial, and without trials nil.
func medianTrial(row *model.Scenario, ok []*sample.Sample) *sample.Sample {
	m := mainMetric(row)
	iv := row.Interval(m)
	var best *sample.Sample
	nearest := math.Inf(1)
	for _, s := range ok {
		v, has := s.Metrics[m]
		if iv == nil || !has {
			v = math.Inf(1)
		} else {
			v = math.Abs(v - iv.Median)
		}
		if best == nil || v < nearest {
			best, nearest = s, v
		}
	}
	return best
}

func mainMetric(row *model.Scenario) sample.Metric {
	if row.Transactions != nil {
		return sample.Transactions
	}
	return sample.Throughput
}

// spread returns n elements of the list, at even distances. with is one of them.
func spread(list []*sample.Sample, with *sample.Sample, n int) []*sample.Sample {
	if len(list) <= n {
		return list
	}
	var picked []*sample.Sample
	for i := range n {
		picked = append(picked, list[i*len(list)/n])
	}
	if !slices.Contains(picked, with) {
		at := slices.IndexFunc(picked, func(s *sample.Sample) bool { return s.Block > with.Block })
		if at < 0 {
			at = n - 1
		}
		picked[at] = with
	}
	return picked
}

// steps averages adjacent points so that at most n remain.
func steps(points []sample.Point, n int) []sample.Point {
	if len(points) <= n {
		return points
	}
	width := (len(points) + n - 1) / n
	var list []sample.Point
	for part := range slices.Chunk(points, width) {
		var mean sample.Point
		exchanged := 0
		for _, p := range part {
			mean.Bits += p.Bits / float64(len(part))
			mean.SenderCPU += p.SenderCPU / float64(len(part))
			mean.ReceiverCPU += p.ReceiverCPU / float64(len(part))
			if p.Latency > 0 { // absent without transactions
				mean.Latency += p.Latency
				exchanged++
			}
			mean.LatencyMax = max(mean.LatencyMax, p.LatencyMax)
		}
		mean.At = part[0].At
		mean.Latency /= float64(max(exchanged, 1))
		list = append(list, mean)
	}
	return list
}
