package validity

import (
	"math"
	"math/rand/v2"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/lab/sample"
)

// steadyFrom returns the time at which the rate of a series became steady, in seconds of
// the window. The marginal standard error rule finds the start-up before it
// (stats.SteadyFrom). ok is false if there are too few points, or if the rate had not
// settled after half of the window.
func steadyFrom(points []sample.Point, window float64) (from float64, ok bool) {
	s := inside(points, window)
	if len(s) < Default.Points {
		return 0, false
	}
	k, by := s.startUp(Default.StartUp)
	if k > 0 {
		from = s[k-1].At
	}
	return from, by == 0
}

func TestSteadyLeavesTheStartUpOut(t *testing.T) {
	for _, c := range []struct {
		name   string
		n      int
		bits   float64
		from   float64
		steady bool
	}{
		{"none", 0, 0, 0, true},
		{"two steps", 2, 1e9, 0.2, true},
		{"six steps", 6, 5e9, 0.6, true},
		{"half of the window", 10, 5e9, 1, false},
		{"most of the window", 15, 5e9, 0, true}, // it is the end that is another
	} {
		from, ok := steadyFrom(startUp(c.n, c.bits), 2)
		if c.name == "most of the window" {
			// The rule cannot tell: it takes no more than half.
			if ok && from > 1 {
				t.Errorf("%s: the rate is steady from %v s on, want at most 1 s, half of the window", c.name, from)
			}
			continue
		}
		if math.Abs(from-c.from) > 1e-9 && c.n > 0 || ok != c.steady {
			t.Errorf("%s: steady from %v s, %v; want %v s, %v", c.name, from, ok, c.from, c.steady)
		}
	}
	if _, ok := steadyFrom(startUp(0, 0)[:8], 2); ok {
		t.Error("seven steps were enough")
	}
}

// Series as a quiet machine yields them, with neighbours that are alike, pass.
func TestANormalRateIsSteady(t *testing.T) {
	must.Long(t)
	const trials = 2000
	for _, c := range []struct {
		name   string
		steps  int
		spread float64 // of a step, part of the rate
		alike  float64 // correlation of neighbours
	}{
		{"short and calm", 9, 0.05, 0.2},
		{"short and noisy", 9, 0.10, 0.2},
		{"calm", 28, 0.05, 0.3},
		{"noisy", 28, 0.07, 0.3},
		{"paced", 28, 0.005, 0},
	} {
		r := rand.New(rand.NewPCG(1, 2))
		in := good()
		in.Window = float64(c.steps) / 10
		bad := 0
		for range trials {
			off := 0.0
			in.Series = series(c.steps, func(int) float64 {
				off = c.alike*off + math.Sqrt(1-c.alike*c.alike)*c.spread*r.NormFloat64()
				return 10e9 * max(0, 1+off)
			})
			if _, flags, _ := Judge(in, Default); len(flags) > 0 {
				bad++
			}
		}
		if share := float64(bad) / trials; share > 0.03 {
			t.Errorf("%s: %.1f %% of steady series are called unsteady", c.name, 100*share)
		} else {
			t.Logf("%s: %.2f %%", c.name, 100*share)
		}
	}
}

// A program that takes half of the CPU from the middle of the window on.
func TestADisturbedRateIsUnsteady(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	const trials = 500
	missed := 0
	for range trials {
		in := good()
		in.Series = series(20, func(i int) float64 {
			rate := 10e9
			if i >= 10 {
				rate = 5e9
			}
			return rate * (1 + 0.05*r.NormFloat64())
		})
		if _, flags, _ := Judge(in, Default); len(flags) == 0 {
			missed++
		}
	}
	if missed > trials/50 {
		t.Errorf("%d of %d trials whose rate halved were called steady", missed, trials)
	}
}
