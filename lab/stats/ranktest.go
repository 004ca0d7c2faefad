package stats

import (
	"cmp"
	"math"
	"slices"
)

// Test is the outcome of a two-sided rank test of two sets of values.
type Test struct {
	P      float64 // probability of an outcome at least so extreme if nothing differs, 0..1
	Effect float64 // −1..+1, positive where the subject is the larger, 0 for no tendency
	N      int     // pairs compared, or values of both sides together
	Floor  float64 // the smallest P that so many values can have at all
}

// ranking holds doubled midranks: whole numbers also where values are tied.
type ranking struct {
	doubled []int   // of the values in the order given; 2 for the smallest
	ties    float64 // Σ (t³ − t) over the groups of t equal values
	tied    bool
}

// rankOf ranks xs from 1; equal values share the mean of their ranks.
func rankOf(xs []float64) ranking {
	order := make([]int, len(xs))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(xs[a], xs[b]) })
	r := ranking{doubled: make([]int, len(xs))}
	for start := 0; start < len(order); {
		end := start + 1
		for end < len(order) && xs[order[end]] == xs[order[start]] {
			end++
		}
		for _, i := range order[start:end] {
			r.doubled[i] = start + 1 + end
		}
		t := float64(end - start)
		r.ties += t*t*t - t
		r.tied = r.tied || t > 1
		start = end
	}
	return r
}

// units returns the ranks in the coarsest whole unit, so that the tables of an
// exact test are no larger than they need be: halves where values are tied.
func (r ranking) units() []int {
	if r.tied {
		return r.doubled
	}
	ranks := make([]int, len(r.doubled))
	for i, d := range r.doubled {
		ranks[i] = d / 2
	}
	return ranks
}

// twoSided doubles the rarer tail of a null distribution at the outcome seen.
// ways[i] is how often, of total, the statistic is i.
func twoSided(ways []float64, total float64, seen int) float64 {
	below, above := 0.0, 0.0
	for _, w := range ways[:seen+1] {
		below += w
	}
	for _, w := range ways[seen:] {
		above += w
	}
	return min(1, 2*min(below, above)/total)
}

// bothTails is the probability that a standard normal value lies beyond ±z,
// right also where 1 less the distribution function would be 0.
func bothTails(z float64) float64 { return math.Erfc(z / math.Sqrt2) }
