package stats

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat/combin"
)

// ChangePoint is where the level of a metric changed in a succession of runs.
type ChangePoint struct {
	Index  int     // of the first run at the new level
	Before float64 // median of the runs' medians since the change before, or the first run
	After  float64 // the same, up to the next change or the last run
	Ratio  float64 // After / Before; 0 where Before is zero
	P      float64 // of this split of the runs around it
}

// runsASide is how many runs must stand on each side of a change: fewer could
// be a passing disturbance.
const runsASide = 3

// changeDraws is how many random successions a change is held against.
const changeDraws = 1999

// ChangePoints finds where the level of a metric changed over many runs, each
// group holding one run's trials, at significance alpha. It compares the runs'
// medians, not their trials, so that what a whole run has in common (the host
// that day) counts as noise. Of all stretches of runs, at the beginning, at the
// end or in between, it takes the one whose level differs most from the rest;
// where noise alone seldom has one that does, the succession is split at its
// sharper end and both halves are searched in the same way. At last each change
// is put where the step between its neighbours is clearest. Every level lasts for
// three runs at least.
//
// How seldom, random orders of the same runs tell (a permutation test, drawn
// from a fixed seed). Of few runs (fewer than 13 at 0.05) there are too few
// orders for anything but a flawless step to be rare; for those normal noise is
// drawn instead, which a median of trials is close to. The work grows with
// the square of the runs, of which it takes some hundred.
//
// A run without trials, or with one that is not finite, is passed over; indices
// count it. Change points come in ascending order; there are none for an alpha
// that is not between 0 and 1.
//
// Source: Olshen, Venkatraman, Lucito & Wigler 2004, Circular Binary
// Segmentation, here with one split at a time.
func ChangePoints(groups [][]float64, alpha float64) []ChangePoint {
	var levels []float64
	var index []int
	for i, trials := range groups {
		if median, ok, err := Median(trials); ok && err == nil {
			levels, index = append(levels, median), append(index, i)
		}
	}
	if !(alpha > 0 && alpha < 1) {
		return nil
	}
	splits := segment(levels, 0, alpha)
	slices.SortFunc(splits, func(a, b split) int { return cmp.Compare(a.at, b.at) })
	refine(scaled(levels), splits)
	return describe(levels, index, splits)
}

// split parts a succession before the run at.
type split struct {
	at int
	p  float64
}

// segment finds the changes of levels, whose first stands at offset.
func segment(levels []float64, offset int, alpha float64) []split {
	if len(levels) < 2*runsASide {
		return nil
	}
	values := scaled(levels)
	sums := make([]float64, len(values)+1)
	share, first, end := oddest(values, sums)
	p := rarity(values, share, alpha)
	if p > alpha {
		return nil
	}
	at := sharper(sums, first, end)
	found := append(segment(levels[:at], offset, alpha), split{at: offset + at, p: p})
	return append(found, segment(levels[at:], offset+at, alpha)...)
}

// scaled divides by the largest magnitude, so that no square overflows.
func scaled(levels []float64) []float64 {
	scale := 0.0
	for _, x := range levels {
		scale = math.Max(scale, math.Abs(x))
	}
	values := make([]float64, len(levels))
	if scale > 0 {
		for i, x := range levels {
			values[i] = x / scale
		}
	}
	return values
}

// oddest returns the stretch of values, from first to before end, whose level
// differs most from the others', and the share of all variation that the
// difference explains: 0 for equal values, 1 for two levels without noise.
// Student's t of the two grows with it. sums, one longer than values, is left
// with the running sums of values about their mean.
func oddest(values, sums []float64) (share float64, first, end int) {
	total := runningSums(values, sums)
	n := len(values)
	if total <= 1e-24*float64(n) {
		return 0, 0, n // equal but for rounding
	}
	for i := 0; i <= n-runsASide; i++ {
		if i > 0 && i < runsASide {
			continue
		}
		for j := i + runsASide; j <= n; j++ {
			if rest := n - j; rest > 0 && rest < runsASide || j-i == n {
				continue
			}
			inside, outside := float64(j-i), float64(n-j+i)
			sum := sums[j] - sums[i]
			if s := sum * sum * float64(n) / (inside * outside * total); s > share {
				share, first, end = s, i, j
			}
		}
	}
	return share, first, end
}

// runningSums returns the squared deviations of values from their mean.
func runningSums(values, sums []float64) (total float64) {
	mean := 0.0
	for _, x := range values {
		mean += x / float64(len(values))
	}
	for i, x := range values {
		sums[i+1] = sums[i] + x - mean
		total += (x - mean) * (x - mean)
	}
	return total
}

// sharper returns the end of a stretch at which the step is the clearer, given
// the running sums of the whole.
func sharper(sums []float64, first, end int) int {
	n := len(sums) - 1
	switch {
	case first == 0:
		return end
	case end == n || step(sums, 0, first, end) >= step(sums, first, end, n):
		return first
	}
	return end
}

// step is the variation, squared, that two levels explain which part at at.
func step(sums []float64, from, at, to int) float64 {
	a, b := float64(at-from), float64(to-at)
	jump := (sums[at]-sums[from])/a - (sums[to]-sums[at])/b
	return jump * jump * a * b / (a + b)
}

// refine moves every split to the clearest step between its neighbours: where
// it was found, other changes were still in the way (Bai 1997, Estimating
// Multiple Breaks One at a Time).
func refine(values []float64, splits []split) {
	sums := make([]float64, len(values)+1)
	runningSums(values, sums)
	for i := range splits {
		from, to := between(splits, i, len(values))
		best := step(sums, from, splits[i].at, to)
		for at := from + runsASide; at <= to-runsASide; at++ {
			if s := step(sums, from, at, to); s > best {
				best, splits[i].at = s, at
			}
		}
	}
}

// between returns from where and to where the levels around split i last.
func between(splits []split, i, n int) (from, to int) {
	to = n
	if i > 0 {
		from = splits[i-1].at
	}
	if i+1 < len(splits) {
		to = splits[i+1].at
	}
	return from, to
}

// rarity returns in what share of random successions some stretch stands out
// as much; once it is sure to be above alpha, a lower bound of it.
func rarity(levels []float64, share, alpha float64) float64 {
	if share == 0 {
		return 1
	}
	rng := rand.New(rand.NewPCG(2004, uint64(len(levels))))
	values, sums := slices.Clone(levels), make([]float64, len(levels)+1)
	draw := func() { rng.Shuffle(len(values), func(i, j int) { values[i], values[j] = values[j], values[i] }) }
	if permutationFloor(len(values)) > alpha/2 {
		draw = func() {
			for i := range values {
				values[i] = rng.NormFloat64()
			}
		}
	}
	reached := 1.0 // the succession seen is one of those possible
	for i := 0; i < changeDraws && reached <= alpha*(changeDraws+1); i++ {
		draw()
		// The same runs in another order add up with other rounding.
		if other, _, _ := oddest(values, sums); other >= share*(1-1e-9) {
			reached++
		}
	}
	return reached / (changeDraws + 1)
}

// permutationFloor is how rare runsASide runs at another level, among n, can be
// at best: they may stand first, last, or with as many on both sides.
func permutationFloor(n int) float64 {
	places := 2 + max(0, n-3*runsASide+1)
	return float64(places) / float64(combin.Binomial(n, runsASide))
}

// describe gives each split the levels on both its sides.
func describe(levels []float64, index []int, splits []split) []ChangePoint {
	var points []ChangePoint
	for i, s := range splits {
		from, to := between(splits, i, len(levels))
		c := ChangePoint{Index: index[s.at], Before: middleOf(levels[from:s.at]), After: middleOf(levels[s.at:to]), P: s.p}
		if c.Before != 0 {
			c.Ratio = c.After / c.Before
		}
		points = append(points, c)
	}
	return points
}
