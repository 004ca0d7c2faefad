package stats

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat/combin"
)

// ChangePoint is a run at which the level of a metric changed.
type ChangePoint struct {
	Index  int     // of the first run at the new level
	Before float64 // median of the runs' medians, from the previous change or the first run on
	After  float64 // the same, up to the next change or the last run
	Ratio  float64 // After / Before; 0 where Before is zero
	P      float64 // p-value of this split of the runs around it
}

// runsASide is the fewest runs on each side of a change. Fewer runs could be a
// passing disturbance.
const runsASide = 3

// changeDraws is the number of random sequences that a change is compared with.
const changeDraws = 1999

// ChangePoints finds where the level of a metric changed over many runs, at
// significance alpha. Each group holds one run's trials. The medians of the
// runs are compared, not their trials, so that a disturbance of a whole run
// counts as noise.
//
// The search takes the stretch of runs whose level differs most from the rest:
// at the beginning, at the end or in between. If noise alone seldom has such a
// stretch, the sequence is split at the clearer end of the stretch, and both
// parts are searched in the same way. Finally each change moves to the clearest
// step between its neighbours. Every level lasts for at least three runs.
//
// How seldom noise has such a stretch is estimated by a permutation test:
// random orders of the same runs, with a fixed seed. Few runs (fewer than 13 at
// 0.05) have too few orders. For them normal noise is drawn instead; medians of
// trials are close to normal. The work grows with the square of the number of
// runs; some hundred runs are fine.
//
// A run without trials, or with a value that is not finite, is skipped; its
// index still counts. Change points are in ascending order. There are none if
// alpha is not between 0 and 1.
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
	refine(divideByLargest(levels), splits)
	return describe(levels, index, splits)
}

// split divides a sequence before the run at.
type split struct {
	at int
	p  float64
}

// segment finds the changes in levels. offset is the index of the first level.
func segment(levels []float64, offset int, alpha float64) []split {
	if len(levels) < 2*runsASide {
		return nil
	}
	values := divideByLargest(levels)
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

// oddest returns the stretch of values, from first to before end, whose level
// differs most from the others'. share is the part of all variation that this
// difference explains: 0 for equal values, 1 for two levels without noise.
// Student's t of the two levels grows with share. sums must be one longer than
// values; it receives the running sums of values about their mean.
func oddest(values, sums []float64) (share float64, first, end int) {
	total := runningSums(values, sums)
	n := len(values)
	if total <= 1e-24*float64(n) {
		return 0, 0, n // equal except for rounding
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

// runningSums fills sums and returns the sum of the squared deviations of
// values from their mean.
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

// sharper returns the end of a stretch at which the step is clearer, given the
// running sums of the whole sequence.
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

// step is the squared variation that two levels explain, divided at index at.
func step(sums []float64, from, at, to int) float64 {
	a, b := float64(at-from), float64(to-at)
	jump := (sums[at]-sums[from])/a - (sums[to]-sums[at])/b
	return jump * jump * a * b / (a + b)
}

// refine moves every split to the clearest step between its neighbours. When a
// split was found, other changes still disturbed its place (Bai 1997,
// Estimating Multiple Breaks One at a Time).
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

// between returns the range of the two levels around split i.
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

// rarity returns the share of random sequences in which some stretch differs as
// much. As soon as the share is certainly above alpha, it returns a lower
// bound.
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
	reached := 1.0 // the observed sequence is one of the possible ones
	for i := 0; i < changeDraws && reached <= alpha*(changeDraws+1); i++ {
		draw()
		// The same runs in another order add up with different rounding.
		if other, _, _ := oddest(values, sums); other >= share*(1-1e-9) {
			reached++
		}
	}
	return reached / (changeDraws + 1)
}

// permutationFloor is the smallest share that runsASide runs at another level,
// among n, can have: they may be first, last, or with as many on both sides.
func permutationFloor(n int) float64 {
	places := 2 + max(0, n-3*runsASide+1)
	return float64(places) / float64(combin.Binomial(n, runsASide))
}

// describe adds the levels on both sides to each split.
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

// SteadyFrom returns the index from which a series is steady, by the marginal
// standard error rule (MSER). The rule removes the start whose removal makes
// the mean of the other values most precise: the sum of squared deviations over the
// squared length is smallest. At most the first half is removed. An index of
// len(ys)/2 means that the series may never have become steady. The result is 0
// for fewer than four values, and len(ys) if a value is not finite.
//
// MSER-5 takes means of five points. Here single points are used, because a
// trial of 3 s has only 30.
//
// Source: White 1997, An Effective Truncation Heuristic for Bias Reduction in
// Simulation Output.
func SteadyFrom(ys []float64) int {
	if finite(ys) != nil {
		return len(ys)
	}
	if len(ys) < 4 {
		return 0
	}
	best, from := math.Inf(1), 0
	count, mean, squares := 0.0, 0.0, 0.0
	for i, y := range slices.Backward(divideByLargest(ys)) {
		// Welford's algorithm, from the last value to the first.
		count++
		before := y - mean
		mean += before / count
		squares += before * (y - mean)
		if i > len(ys)/2 {
			continue
		}
		if se := squares / (count * count); se <= best {
			best, from = se, i
		}
	}
	return from
}
