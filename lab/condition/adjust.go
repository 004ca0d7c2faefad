package condition

import (
	"math"
	"slices"

	"windtunnel/lab/sample"
	"windtunnel/lab/stats"
)

// Adjust converts the figures of one run's trials into those for one state of
// the machine: its CPUs at one distance, and no steal. It is for hours in which
// the state changes too often for whole trials, or most slices, to be in one
// state.
//
// Each scenario's slices are regressed, in logarithms, on the distance and the
// steal at that time. A trial's figures are means over its slices. So Adjust
// multiplies each figure by the mean of the adjusted slices, and divides it by
// the mean of the measured slices. Steal and changes of the distance no longer
// reject a trial: Adjust turns their gates into flags. It adjusts the figures to
// the distance at which most of the remaining trials ran. Trials that failed
// other gates are not part of the regression, and their figures do not change.
// Adjust returns new samples, and does not change the given ones.
func Adjust(samples []sample.Sample, choice Choice) []sample.Sample {
	adjusted := slices.Clone(samples)
	for i := range adjusted {
		if s := &adjusted[i]; s.OK() {
			s.Metrics = sample.Metrics{}
			s.Metrics.Merge(samples[i].Metrics)
			Forgive(s)
		}
	}
	levels, _, shown := Split(adjusted, choice)
	to := 0.0
	if len(levels) > 0 {
		to = levels[shown].Median
	}
	type series struct {
		scenario string
		profiled bool
	}
	all := map[series][]*sample.Sample{}
	for i := range adjusted {
		s := &adjusted[i]
		if !s.OK() || len(s.Gates) > 0 {
			continue
		}
		if _, ok := s.Metrics[sample.CPUDistance]; ok && len(levels) > 0 {
			s.Metrics.Set(sample.CPUDistance, to)
		}
		k := series{s.Scenario, s.Profiled}
		all[k] = append(all[k], s)
	}
	for _, trials := range all {
		adjust(trials, to)
	}
	return adjusted
}

// Adjustable reports whether figures can be adjusted for what this gate found.
func Adjustable(g sample.Gate) bool { return g.Name == sample.Steal || g.Name == sample.CPUMoved }

// Forgive turns the gates for which a trial can be adjusted into flags.
func Forgive(s *sample.Sample) {
	flags := slices.DeleteFunc(slices.Clone(s.Gates), func(g sample.Gate) bool { return !Adjustable(g) })
	s.Gates = slices.DeleteFunc(slices.Clone(s.Gates), Adjustable)
	s.Flags = slices.Concat(s.Flags, flags)
}

// slice is one slice of a trial's series.
type slice struct {
	seconds    float64
	kept       bool // the trial's figures include it
	logs       [3]float64
	covariates []float64
}

// adjust adjusts the trials of one scenario to a distance in ns.
func adjust(trials []*sample.Sample, to float64) {
	parts := make([][]slice, len(trials))
	for i, s := range trials {
		parts[i] = slicesOf(s, to)
	}
	var x [][]float64
	for _, part := range parts {
		for _, p := range part {
			x = append(x, p.covariates)
		}
	}
	var levels [3][]float64 // logarithms of the adjusted rate, sender's CPU and receiver's CPU, for the slices of all trials
	for k := range levels {
		var y []float64
		for _, part := range parts {
			for _, p := range part {
				y = append(y, p.logs[k])
			}
		}
		var err error
		if levels[k], err = stats.Adjust(y, x); err != nil {
			return
		}
	}
	next := 0
	for i, s := range trials {
		var now, then means
		for _, p := range parts[i] {
			then.add(p.seconds, [3]float64{levels[0][next], levels[1][next], levels[2][next]})
			if next++; p.kept {
				now.add(p.seconds, p.logs)
			}
		}
		if now.seconds > 0 {
			Scale(s.Metrics, then.of(0)/now.of(0), then.of(1)/now.of(1), then.of(2)/now.of(2))
		}
	}
}

// means computes time-weighted means over slices: of the rate, of the sender's CPU and of the receiver's CPU, in this
// order. sums has the sums of value × seconds.
type means struct {
	seconds float64
	sums    [3]float64
}

// add adds a slice. logs are as in slice.
func (m *means) add(seconds float64, logs [3]float64) {
	m.seconds += seconds
	for k, log := range logs {
		if k > 0 {
			log += logs[0] // from CPU per bit to CPU
		}
		m.sums[k] += seconds * math.Exp(log)
	}
}

func (m *means) of(k int) float64 { return m.sums[k] / m.seconds }

// slicesOf lists the slices of a trial's window: the logarithms of the rate and
// of both nodes' CPU per bit, with distance and steal as covariates. The
// trial's figures include the slices that are not left out, or all where every
// slice is left out.
func slicesOf(s *sample.Sample, to float64) []slice {
	var list []slice
	inside := Inside(s.Series, s.Metrics[sample.WindowSeconds])
	none := !slices.ContainsFunc(inside, func(p sample.Point) bool { return p.LeftOut == "" })
	for i, p := range inside {
		if !(p.Bits > 0) {
			continue
		}
		const least = 0.1 // percent; the logarithm of 0 does not exist
		list = append(list, slice{
			seconds:    p.Seconds,
			kept:       none || p.LeftOut == "",
			logs:       [3]float64{math.Log(p.Bits), math.Log(max(p.SenderCPU, least) / p.Bits), math.Log(max(p.ReceiverCPU, least) / p.Bits)},
			covariates: []float64{farther(inside, i, to), p.Steal / 100},
		})
	}
	return list
}

// farther is the logarithm of a slice's distance over the distance that figures
// are adjusted to. It uses the readings nearest to the slice. Two levels give
// two values; it also works where noise fills the gap between levels.
func farther(points []sample.Point, i int, to float64) float64 {
	sum, n := 0.0, 0
	for far := 0; far < len(points) && n == 0; far++ {
		for _, j := range []int{i - far, i + far} {
			if j >= 0 && j < len(points) && points[j].CPUDistance > 0 {
				sum += math.Log(points[j].CPUDistance / to)
				n++
			}
		}
	}
	return sum / float64(max(n, 1))
}
