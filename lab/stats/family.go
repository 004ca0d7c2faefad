package stats

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

const (
	// mostEnumerated is the largest number of blocks for which all sign changes are
	// tried. 13 blocks have 2¹², because a change and its opposite are equivalent.
	mostEnumerated = 13
	// drawn is the number of random sign changes that are tried with more blocks.
	drawn = 4096
)

// Family corrects the tests of several comparisons over the same blocks.
// differences[k][i] is the figure of comparison k in block i: a difference, or the
// logarithm of a ratio; NaN if the block has no figure. Family returns a corrected
// p-value for each comparison. If no comparison has a true difference, the smallest
// corrected p is at most alpha with a probability of at most alpha.
//
// Family first limits each figure to 1.5 times the median absolute figure of its
// comparison. Without a true difference the signs of all figures in a block could
// equally well be the opposite. So Family changes the signs of whole blocks. It counts
// the changes for which the largest Student's t of the comparisons reaches the
// observed one (Westfall and Young's step-down maxT).
//
// A difference far above the noise in all n blocks has the corrected p 2^(1−n), with
// any number of comparisons. Holm's correction would multiply this p by the number.
// Comparisons that depend on each other, such as those with one baseline, are
// corrected less than independent ones.
//
// Source: Westfall & Young 1993, Resampling-Based Multiple Testing, 2.6.
func Family(differences [][]float64) []float64 {
	rows := make([]differing, len(differences))
	order := make([]int, len(differences)) // comparisons by descending t
	blocks := 0
	for k, xs := range differences {
		rows[k], order[k] = newDiffering(xs), k
		blocks = max(blocks, len(xs))
	}
	same := slices.Repeat([]float64{1}, blocks)
	observed := make([]float64, len(rows))
	for k := range rows {
		observed[k] = rows[k].t(same)
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(observed[b], observed[a]) })
	reached, tried := make([]float64, len(rows)), 0.0
	for signs := range signChanges(blocks) {
		tried++
		highest := 0.0
		for _, k := range slices.Backward(order) {
			highest = max(highest, rows[k].t(signs))
			const rounding = 1e-9
			if highest >= observed[k]*(1-rounding) {
				reached[k]++
			}
		}
	}
	adjusted, above := make([]float64, len(rows)), 0.0
	for _, k := range order {
		above = max(above, reached[k]/tried)
		adjusted[k] = above
	}
	return adjusted
}

// clip bounds a difference, in multiples of the median absolute difference. Without
// it one block with a larger difference in the same direction would increase the
// spread and hide a certain difference. The bound does not depend on signs, so the
// test stays exact.
const clip = 1.5

// differing has the clipped differences of one comparison.
type differing struct {
	xs      []float64 // by block; 0 if the block has none
	n       float64   // number of blocks with a difference
	squares float64   // sum of the squares of xs
}

func newDiffering(xs []float64) differing {
	d := differing{xs: slices.Clone(xs)}
	var sizes []float64
	for _, x := range xs {
		if !math.IsNaN(x) {
			sizes = append(sizes, math.Abs(x))
		}
	}
	d.n = float64(len(sizes))
	typical, _, _ := Median(sizes)
	for i, x := range d.xs {
		switch {
		case math.IsNaN(x):
			d.xs[i] = 0
		case typical > 0:
			d.xs[i] = max(-clip*typical, min(x, clip*typical))
		}
		d.squares += d.xs[i] * d.xs[i]
	}
	return d
}

// t returns the square of Student's t of the differences with these signs. It is
// infinite if the differences do not vary.
func (d differing) t(signs []float64) float64 {
	sum := 0.0
	for i, x := range d.xs {
		sum += signs[i] * x
	}
	if sum == 0 {
		return 0
	}
	const rounding = 1e-12
	part := sum * sum / d.squares // at most n
	if part >= d.n*(1-rounding) {
		return math.Inf(1)
	}
	return (d.n - 1) * part / (d.n - part)
}

// signChanges yields sign changes of n blocks: a factor 1 or −1 for each block. The
// first has only 1. Every call yields the same sequence.
func signChanges(n int) func(yield func([]float64) bool) {
	return func(yield func([]float64) bool) {
		signs := slices.Repeat([]float64{1}, n)
		if n <= mostEnumerated {
			for change := range 1 << max(n-1, 0) {
				for i := range signs {
					signs[i] = float64(1 - 2*(change>>i&1))
				}
				if !yield(signs) {
					return
				}
			}
			return
		}
		rng := rand.New(rand.NewPCG(1, uint64(n)))
		for range drawn {
			if !yield(signs) {
				return
			}
			for i := range signs {
				signs[i] = float64(1 - 2*rng.IntN(2))
			}
		}
	}
}

// Holm corrects the p-values of one family of tests. Compared with a level, the
// corrected values give a probability of at most that level for even one false
// finding. The results are in the order of ps and at most 1; they keep the
// ranking of ps. A NaN (a test that could not be made) stays NaN and does not
// count in the family.
//
// Source: Holm 1979, A Simple Sequentially Rejective Multiple Test Procedure.
func Holm(ps []float64) []float64 {
	adjusted := slices.Clone(ps)
	order := make([]int, 0, len(ps))
	for i, p := range ps {
		if !math.IsNaN(p) {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(ps[a], ps[b]) })
	highest := 0.0
	for done, i := range order {
		highest = min(1, max(highest, ps[i]*float64(len(order)-done)))
		adjusted[i] = highest
	}
	return adjusted
}
