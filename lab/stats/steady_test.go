package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

// slowStart is a rate in steps of 100 ms that grows to 1 over the first rise
// steps, with noise of 5 %.
func slowStart(rng *rand.Rand, n, rise int) []float64 {
	ys := make([]float64, n)
	for i := range ys {
		ys[i] = 9e9 * (1 + 0.05*rng.NormFloat64())
		if i < rise {
			ys[i] *= float64(i+1) / float64(rise+1)
		}
	}
	return ys
}

func TestSteadyFromFindsTheEndOfSlowStart(t *testing.T) {
	for _, c := range []struct{ n, rise int }{{30, 5}, {30, 10}, {100, 20}, {100, 40}} {
		rng := rand.New(rand.NewPCG(20, uint64(c.n*c.rise)))
		close, cut := 0, 0.0
		const rounds = 400
		for range rounds {
			from := SteadyFrom(slowStart(rng, c.n, c.rise))
			cut += float64(from) / rounds
			// The last steps of the rise are within the noise.
			if from >= c.rise*7/10 && from <= c.rise+c.n/6 {
				close++
			}
		}
		t.Logf("%d steps, %d of slow start: %.1f cut on average, near the end of the rise in %d of %d", c.n, c.rise, cut, close, rounds)
		if close < rounds*9/10 {
			t.Errorf("%d steps, %d of slow start: the end is found in %d of %d", c.n, c.rise, close, rounds)
		}
	}
}

func TestSteadyFromLeavesMostOfAnEvenSeries(t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 0))
	const rounds = 400
	cut, most := 0.0, 0
	for range rounds {
		from := SteadyFrom(slowStart(rng, 60, 0))
		cut += float64(from) / rounds
		if from >= 30 {
			most++
		}
	}
	t.Logf("%.1f of 60 cut on average, half of it in %d of %d", cut, most, rounds)
	if cut > 8 || most > rounds/20 {
		t.Errorf("of an even series %.1f of 60 are cut, half of it in %d of %d", cut, most, rounds)
	}
}

func TestSteadyFromTakesHalfOfASeriesThatNeverSettles(t *testing.T) {
	ys := make([]float64, 40)
	for i := range ys {
		ys[i] = float64(i)
	}
	if got := SteadyFrom(ys); got != 20 {
		t.Errorf("steady from %d, want 20, the most that is taken for start-up", got)
	}
}

func TestSteadyFromAtTheEdges(t *testing.T) {
	for name, c := range map[string]struct {
		ys   []float64
		want int
	}{
		"none":             {nil, 0},
		"three":            {[]float64{0, 9, 9}, 0},
		"all equal":        {[]float64{7, 7, 7, 7, 7, 7, 7, 7}, 0},
		"all zero":         {make([]float64, 10), 0},
		"one low at first": {[]float64{1, 9, 9, 9, 9, 9, 9, 9}, 1},
		"not a number":     {[]float64{1, 2, math.NaN(), 2, 2, 2}, 6},
		"huge":             {[]float64{0, math.MaxFloat64, math.MaxFloat64, math.MaxFloat64, math.MaxFloat64, math.MaxFloat64}, 1},
	} {
		if got := SteadyFrom(c.ys); got != c.want {
			t.Errorf("%s: steady from %d, want %d", name, got, c.want)
		}
	}
}
