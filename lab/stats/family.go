package stats

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

const (
	// mostEnumerated is the largest number of blocks whose sign changes are all
	// tried: 2¹² of 13 blocks, since opposite ones are alike.
	mostEnumerated = 13
	// drawn is how many sign changes are drawn at random of more blocks.
	drawn = 4096
)

// Family corrects the tests of several comparisons over the same blocks.
// differences[k][i] is what comparison k shows in block i: a difference, or the
// logarithm of a ratio; NaN where it has none. The results are corrected
// p-values: where no comparison has a difference, the smallest of them is at
// most alpha with a probability of at most alpha.
//
// If nothing differs, each block could have shown the opposite of everything it
// shows. Family counts the sign changes of whole blocks for which the largest
// Student's t of the comparisons reaches the one observed (Westfall and Young's
// step-down maxT). A difference that is far beyond the noise in all n blocks thus
// has the corrected p of its own test, 2^(1−n), whatever the number of
// comparisons; Holm's correction would multiply that by the number. Comparisons
// that depend on each other, such as those with one baseline, count as one.
//
// Source: Westfall & Young 1993, Resampling-Based Multiple Testing, 2.6.
func Family(differences [][]float64) []float64 {
	rows := make([]differing, len(differences))
	order := make([]int, len(differences)) // the largest t first
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

// clip is the largest difference that counts in full, in medians of the absolute
// differences. Without it one block that differs more than the others, in the same
// direction, would enlarge the spread and hide a certain difference. It depends on
// no sign, so the test stays exact.
const clip = 1.5

// differing has the differences of one comparison, 0 where it has none.
type differing struct {
	xs      []float64
	n       float64 // blocks that have one
	squares float64
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

// t is the square of Student's t of the differences with these signs. It is
// infinite if they do not vary.
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

// signChanges yields the sign changes of n blocks, no change first. They are the
// same at every call.
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
