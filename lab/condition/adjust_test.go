package condition

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/lab/sample"
	"windtunnel/lab/stats"
)

// unsettled makes a run on a machine whose CPUs change their distance twice a
// second, and lose a fifth of the slices to steal. The subject has 0.7 of the
// baseline's rate in the near state. The far state costs both a third of it;
// steal costs its share.
func unsettled(rng *rand.Rand, blocks int) []sample.Sample {
	var list []sample.Sample
	for block := range blocks {
		for scenario, rate := range map[string]float64{"baseline": 10e9, "subject": 7e9} {
			s := sample.Sample{Scenario: scenario, Block: block, Metrics: sample.Metrics{sample.WindowSeconds: 1}}
			far, bits := rng.Float64() < 0.5, 0.0
			for i := range 10 {
				if rng.Float64() < 0.2 {
					far = !far
				}
				p := sample.Point{At: float64(i+1) / 10, Seconds: 0.1, Bits: rate * math.Exp(0.08*rng.NormFloat64()), SenderCPU: 60, ReceiverCPU: 70, CPUDistance: 60}
				if far {
					p.CPUDistance, p.Bits = 340, p.Bits*2/3
				}
				if rng.Float64() < 0.2 {
					p.Steal = float64(10 * (1 + rng.IntN(3)))
					p.Bits *= 1 - p.Steal/100
				}
				bits += p.Bits / 10
				s.Series = append(s.Series, p)
			}
			s.Metrics.Set(sample.Throughput, bits)
			s.Metrics.Set(sample.SenderCPU, 60)
			s.Metrics.Set(sample.SenderCPUPerByte, 60*8e7/bits)
			s.Metrics.Set(sample.CPUDistance, s.Series[0].CPUDistance)
			list = append(list, s)
		}
	}
	return list
}

func ratioOf(t *testing.T, samples []sample.Sample, m sample.Metric) stats.Estimate {
	t.Helper()
	values := map[string]map[int]float64{"baseline": {}, "subject": {}}
	for _, s := range samples {
		values[s.Scenario][s.Block] = s.Metrics[m]
	}
	var over, under []float64
	for block := range len(values["subject"]) {
		over, under = append(over, values["subject"][block]), append(under, values["baseline"][block])
	}
	e, ok, err := stats.Ratio(over, under, stats.Level)
	if err != nil || !ok {
		t.Fatalf("the ratio: %v, %v; want one", ok, err)
	}
	return e
}

// At the far CPU distance the baseline loses a third of its rate, and the subject a tenth. The adjusted ratio must be the
// ratio at the near distance. Each trial is at the far distance for a part of its time only.
func TestTheAdjustedRatioIsThatOfOneState(t *testing.T) {
	for _, share := range []float64{0.1, 0.3, 0.45} {
		rng := rand.New(rand.NewPCG(2, 9))
		const runs = 50
		mean := 0.0
		for range runs {
			var list []sample.Sample
			for block := range 11 {
				for scenario, r := range map[string][2]float64{"baseline": {10e9, 2. / 3}, "subject": {7e9, 0.9}} {
					s := sample.Sample{Scenario: scenario, Block: block, Metrics: sample.Metrics{sample.WindowSeconds: 3, sample.CPUDistance: 60}}
					bits := 0.0
					for i := range 30 {
						p := sample.Point{At: float64(i+1) / 10, Seconds: 0.1, Bits: r[0] * math.Exp(0.05*rng.NormFloat64()), SenderCPU: 90, ReceiverCPU: 90, CPUDistance: 60}
						if rng.Float64() < share {
							p.Bits, p.CPUDistance = p.Bits*r[1], 340
						}
						bits += p.Bits / 30
						s.Series = append(s.Series, p)
					}
					s.Metrics.Set(sample.Throughput, bits)
					list = append(list, s)
				}
			}
			mean += ratioOf(t, Adjust(list, Auto), sample.Throughput).Median / runs
		}
		t.Logf("with %.0f %% of the slices at the far distance, the mean ratio is %.3f", 100*share, mean)
		if math.Abs(mean/0.7-1) > 0.01 {
			t.Errorf("with %.0f %% of the slices at the far distance, the mean ratio is %.3f, want 0.700", 100*share, mean)
		}
	}
}

// Adjusted figures are for the distance of most trials, and without steal.
func TestFiguresAreAdjustedToOneState(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 5))
	samples := Adjust(unsettled(rng, 60), Auto)
	var rates []float64
	for _, s := range samples {
		if s.Scenario == "baseline" {
			rates = append(rates, s.Metrics[sample.Throughput])
		}
	}
	if median, _, _ := stats.Median(rates); math.Abs(median/10e9-1) > 0.03 {
		t.Errorf("the baseline carries %.2f Gbit/s, want 10", median/1e9)
	}
}

// The CPU use of another program disturbed one trial. The adjusted figures of the other trials
// are the same with and without it.
func TestADisturbedTrialDoesNotChangeTheOthers(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	quiet := unsettled(rng, 11)
	disturbed := quiet[0]
	disturbed.Gates = []sample.Gate{{Name: sample.ForeignCPU}}
	disturbed.Series = slices.Clone(disturbed.Series)
	for i := range disturbed.Series {
		disturbed.Series[i].CPUDistance = 340
		disturbed.Series[i].Bits /= 20
	}
	want, got := Adjust(quiet, Auto), Adjust(append(slices.Clone(quiet), disturbed), Auto)
	for i := range want {
		if a, b := want[i].Metrics[sample.Throughput], got[i].Metrics[sample.Throughput]; a != b {
			t.Errorf("trial %d of %s: %g beside a disturbed trial, %g without", want[i].Block, want[i].Scenario, b, a)
		}
	}
}

// The gate for the CPU distance rejected the trials at 60 ns. Adjust accepts them again. They are
// then the majority, so the figures are adjusted to 60 ns.
func TestFiguresAreAdjustedToTheStateOfMostTrials(t *testing.T) {
	samples := unsettled(rand.New(rand.NewPCG(7, 8)), 11)
	for i := range samples {
		d := 60.0
		if i < 4 {
			d = 340
		} else {
			samples[i].Gates = []sample.Gate{{Name: sample.CPUMoved}}
		}
		samples[i].Metrics.Set(sample.CPUDistance, d)
	}
	for _, s := range Adjust(samples, Auto) {
		if d := s.Metrics[sample.CPUDistance]; d != 60 {
			t.Fatalf("the figures are adjusted to %v ns, want 60", d)
		}
	}
}

func TestASettledMachineNeedsNoAdjusting(t *testing.T) {
	s := sample.Sample{Scenario: "a", Metrics: sample.Metrics{sample.Throughput: 1.1e9, sample.SenderCPU: 50, sample.WindowSeconds: 1}}
	for i := range 10 {
		s.Series = append(s.Series, sample.Point{At: float64(i+1) / 10, Seconds: 0.1, Bits: 1e9 + float64(i), SenderCPU: 50, CPUDistance: 60})
	}
	got := Adjust([]sample.Sample{s, s, s}, Auto)
	for i := range got {
		if math.Abs(got[i].Metrics[sample.Throughput]/1.1e9-1) > 1e-9 || got[i].Metrics[sample.SenderCPU] != 50 {
			t.Errorf("trial %d: %v", i, got[i].Metrics)
		}
	}
	must.Equal(t, "1.1e+09", fmt.Sprint(s.Metrics[sample.Throughput]))
}

func TestOnlyGatesOfTheMachinesStateBecomeFlags(t *testing.T) {
	s := sample.Sample{Gates: []sample.Gate{{Name: sample.Steal}, {Name: sample.ForeignCPU}, {Name: sample.CPUMoved}}}
	Forgive(&s)
	if len(s.Gates) != 1 || s.Gates[0].Name != sample.ForeignCPU || len(s.Flags) != 2 {
		t.Errorf("gates %v, flags %v", s.Gates, s.Flags)
	}
}
