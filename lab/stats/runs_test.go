package stats

import (
	"math"
	"math/rand/v2"
	"testing"

	"windtunnel/internal/must"
)

func TestShiftExcludesZeroExactlyWhereItsTestFindsADifference(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 0))
	for range 2000 {
		a, b := make([]float64, 1+rng.IntN(5)), make([]float64, 1+rng.IntN(5))
		for _, side := range [][]float64{a, b} {
			for i := range side {
				side[i] = rng.NormFloat64()
			}
		}
		s, ok := PooledSpread(a, b)
		if !ok {
			s = Spread{Deviation: 1, Freedom: math.Inf(1)}
		}
		e, ok, err := Shift(a, b, s, 0.95)
		if err != nil || !ok || e.Excludes(0) != (e.P <= 0.05) || e.N != len(a)+len(b) {
			t.Fatalf("%v less %v: %+v, %v, %v", a, b, e, ok, err)
		}
	}
}

func TestRunsWithoutSpreadDifferOnlyIfTheirValuesDo(t *testing.T) {
	if e, _, err := Shift([]float64{2, 2}, []float64{2, 2}, Spread{0, 2}, 0.95); err != nil || e.P != 1 || e.Excludes(0) {
		t.Errorf("the shift of equal runs is %+v (%v), want p = 1 and an interval that contains 0", e, err)
	}
	if e, _, err := Shift([]float64{3, 3}, []float64{2, 2}, Spread{0, 2}, 0.95); err != nil || e.P != 0 || !e.Excludes(0) || e.Median != 1 {
		t.Errorf("the shift of different runs is %+v (%v), want 1 with p = 0", e, err)
	}
}

func TestTheDetectableShiftOfRunsIsFoundWithTheGivenPower(t *testing.T) {
	rng := rand.New(rand.NewPCG(32, 0))
	for _, freedom := range []float64{4, math.Inf(1)} {
		const rounds = 3000
		found := 0
		truth := Spread{1, freedom}
		shift := must.Get(truth.Detectable(3, 3, 0.05, 0.8))(t)
		for range rounds {
			a, b := make([]float64, 3), make([]float64, 3)
			for i := range a {
				a[i], b[i] = shift+rng.NormFloat64(), rng.NormFloat64()
			}
			s := truth
			if freedom == 4 {
				s, _ = PooledSpread(a, b)
			}
			if e, _, _ := Shift(a, b, s, 0.95); e.P <= 0.05 {
				found++
			}
		}
		if got := float64(found) / rounds; math.Abs(got-0.8) > 0.03 {
			t.Errorf("%v degrees of freedom: found with power %.3f", freedom, got)
		}
	}
}

func TestMedianErrorIsThatOfTheMedian(t *testing.T) {
	rng := rand.New(rand.NewPCG(33, 0))
	const rounds, n = 2000, 15
	squares, said := 0.0, 0.0
	for range rounds {
		xs := make([]float64, n)
		for i := range xs {
			xs[i] = rng.NormFloat64()
		}
		m := middleOf(xs)
		squares += m * m
		e, ok := MedianError(xs)
		if !ok {
			t.Fatal("no error of 15 values")
		}
		said += e
	}
	if ratio := said / rounds / math.Sqrt(squares/rounds); ratio < 0.95 || ratio > 1.2 {
		t.Errorf("says %.3f times the error that it has", ratio)
	}
	if _, ok := MedianError([]float64{1}); ok {
		t.Error("one value has an error")
	}
}

// A run that checks its intervals after every block, and ends at a width, as
// --precision does.
func TestIntervalsWhoseWidthEndedTheRunContainTheTrueRatio(t *testing.T) {
	must.Long(t)
	for name, noise := range noises {
		for _, wanted := range []float64{0.025, 0.035, 0.06} {
			rng := rand.New(rand.NewPCG(34, 0))
			subject, baseline := make([]float64, 40), make([]float64, 40)
			const rounds = 600
			held := 0
			for range rounds {
				noise(rng, subject, baseline)
				var e Estimate
				for n := 6; n <= len(subject); n++ {
					e, _, _ = Ratio(subject[:n], baseline[:n], Looked(Level))
					if (e.High-e.Low)/2/e.Median <= wanted {
						break
					}
				}
				e = e.AfterLooks()
				if e.Level < Level || e.Excludes(1) != (e.P <= 1-Level) {
					t.Fatalf("%+v: the interval and the p-value disagree, or the level is below 95 %%", e)
				}
				if !e.Excludes(1) {
					held++
				}
			}
			got := float64(held) / rounds
			t.Logf("%s to ±%v: %.3f", name, wanted, got)
			// Two standard errors of the simulation are 0.014.
			if got < 0.93 || got > 0.97+0.014 {
				t.Errorf("%s to ±%v: holds the true ratio in %.3f of rounds", name, wanted, got)
			}
		}
	}
}
