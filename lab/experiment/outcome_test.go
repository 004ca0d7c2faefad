package experiment

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/lab/sample"
	"windtunnel/lab/stats"
	"windtunnel/lab/suite"
	"windtunnel/lab/validity"
)

// wavering is a system whose rate falls to 0.4 of its start in one trial of
// five, which lowers the trial's mean to 0.7.
type wavering struct{ random *rand.Rand }

func (w wavering) trial() (throughput float64, series []sample.Point) {
	rate := 10e9 * (1 + 0.05*w.random.NormFloat64())
	fall := 0.0
	if w.random.Float64() < 0.2 {
		fall = 0.6
	}
	const steps = 20
	for i := range steps + 1 {
		bits := rate * (1 - fall*(float64(i)-0.5)/steps) * (1 + 0.02*w.random.NormFloat64())
		series = append(series, sample.Point{At: float64(i) / 10, Bits: bits})
		if i > 0 {
			throughput += bits / steps
		}
	}
	return throughput, series
}

// What the system does stays in the estimate. A rule that discards unsteady
// trials overrates this system, although its retries fill every block.
func TestSlowTrialsOfTheSystemStayInTheEstimate(t *testing.T) {
	const trials = 2000
	truth := make([]float64, 200_000)
	w := wavering{rand.New(rand.NewPCG(1, 2))}
	for i := range truth {
		truth[i], _ = w.trial()
	}
	for _, c := range []struct {
		name           string
		discard        bool
		slowLow        float64 // share of trials below 0.85 of the full rate
		slowHigh       float64
		median, within float64 // of the estimate over the truth
		mean           float64
	}{
		{"flagged", false, 0.18, 0.22, 1, 0.003, 1},
		{"discarded", true, 0, 0.02, 1.016, 0.003, 1.064},
	} {
		n := &notebook{}
		w := wavering{rand.New(rand.NewPCG(3, 4))}
		e := rehearsal(n, trials, func(_ Trial, _ int, s *sample.Sample) error {
			rate, series := w.trial()
			s.Metrics = sample.Metrics{sample.Throughput: rate}
			s.Gates, s.Flags, _ = validity.Judge(validity.Input{
				Workload: suite.Workload{Kind: suite.TCPStream}, Metrics: s.Metrics, Series: series, Window: 2, Step: 0.1,
			}, validity.Default)
			if c.discard {
				s.Gates = append(s.Gates, s.Flags...)
			}
			return nil
		}, "a")
		must.Succeed(t, e.Run(context.Background()))
		var rates []float64
		slow := 0
		for _, s := range n.samples {
			if s.Counts() {
				rates = append(rates, s.Metrics[sample.Throughput])
				if s.Metrics[sample.Throughput] < 8.5e9 {
					slow++
				}
			}
		}
		share := float64(slow) / float64(len(rates))
		median, mean := middle(t, rates)/middle(t, truth), average(rates)/average(truth)
		if share < c.slowLow || share > c.slowHigh || math.Abs(median-c.median) > c.within || math.Abs(mean-c.mean) > 0.005 {
			t.Errorf("%s: %.1f %% of the trials are slow; estimate over truth: median %.4f, mean %.4f", c.name, 100*share, median, mean)
		}
	}
}

func middle(t *testing.T, xs []float64) float64 {
	t.Helper()
	m, ok, err := stats.Median(xs)
	if !ok || err != nil {
		t.Fatalf("no median: %v", err)
	}
	return m
}

func average(xs []float64) float64 {
	total := 0.0
	for _, x := range xs {
		total += x
	}
	return total / float64(len(xs))
}
