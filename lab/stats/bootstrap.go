package stats

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// medians is the distribution of the median over all resamples, with
// replacement and of the same size, of some values: the bootstrap as it is with
// infinitely many resamples. For a median it can be counted out, so nothing is
// drawn and the same values give the same answer in any order. In ascending
// order.
//
// Source: Efron 1979, Bootstrap Methods, section 3 (the median, in closed
// form).
type medians []weighted

type weighted struct{ value, weight float64 }

// negligible is the weight below which an outcome is left out.
const negligible = 1e-15

// resampledMedians returns the medians of all resamples of sorted. Where n is
// even, middle makes one value of the two in the middle.
func resampledMedians(sorted []float64, middle func(a, b float64) float64) medians {
	var m medians
	if len(sorted)%2 == 1 {
		m = oddMedians(sorted)
	} else {
		m = evenMedians(sorted, middle)
	}
	slices.SortFunc(m, func(a, b weighted) int { return cmp.Compare(a.value, b.value) })
	return m
}

// oddMedians: the middle draw is the i-th smallest value or less where more
// than half of the draws are.
func oddMedians(sorted []float64) medians {
	n := len(sorted)
	m := make(medians, 0, n)
	before := 0.0
	for i, x := range sorted {
		upTo := drawsUpTo(i+1, n, (n+1)/2)
		if w := upTo - before; w > negligible {
			m = append(m, weighted{x, w})
		}
		before = upTo
	}
	return m
}

// evenMedians: the two middle draws are the i-th and the j-th smallest, i < j,
// where one half of the draws has its largest at i and the other its smallest
// at j; they are both the i-th in what remains of the ways for the lower one.
func evenMedians(sorted []float64, middle func(a, b float64) float64) medians {
	n := len(sorted)
	half := n / 2
	// ending[i] is the probability, times √C(n, half), that half of the draws
	// lie at or below the i-th value and one of them at it.
	ending := make([]float64, n+1)
	for i := 1; i <= n; i++ {
		ending[i] = share(i, n, half) - share(i-1, n, half)
	}
	m := make(medians, 0, 4*n)
	before := 0.0
	for i := 1; i <= n; i++ {
		upTo := drawsUpTo(i, n, half)
		lower := upTo - before
		before = upTo
		apart := ending[i] * share(n-i, n, half)
		if both := lower - apart; both > negligible {
			m = append(m, weighted{sorted[i-1], both})
		}
		for j := i + 1; j <= n && ending[i]*share(n-j+1, n, half) > negligible; j++ {
			if w := ending[i] * ending[n-j+1]; w > negligible {
				m = append(m, weighted{middle(sorted[i-1], sorted[j-1]), w})
			}
		}
	}
	return m
}

// share is (i/n)^half × √C(n, half): of two such factors the product is a
// probability, and neither over- nor underflows before its turn.
func share(i, n, half int) float64 {
	if i == 0 {
		return 0
	}
	whole, _ := math.Lgamma(float64(n + 1))
	part, _ := math.Lgamma(float64(half + 1))
	rest, _ := math.Lgamma(float64(n - half + 1))
	return math.Exp(float64(half)*math.Log(float64(i)/float64(n)) + (whole-part-rest)/2)
}

// drawsUpTo is the probability that at least k of n draws are among the i
// smallest of n values.
func drawsUpTo(i, n, k int) float64 {
	if i == n {
		return 1
	}
	return distuv.Binomial{N: float64(n), P: float64(i) / float64(n)}.Survival(float64(k - 1))
}

// tails returns the smallest value that at least the share tail of the weight
// lies at or below, and the largest that as much lies at or above.
func (m medians) tails(tail float64) (low, high float64) {
	sum := 0.0
	for i := 0; i < len(m) && sum < tail; i++ {
		low, sum = m[i].value, sum+m[i].weight
	}
	sum = 0
	for i := len(m) - 1; i >= 0 && sum < tail; i-- {
		high, sum = m[i].value, sum+m[i].weight
	}
	return low, high
}

// expandedTail is the share of a bootstrap distribution with freedom + 1 values
// to cut off at each end for confidence level. A resample varies less than a fresh sample
// does, by √((n−1)/n), and its tails are the normal distribution's where
// Student's are due; both are made good.
//
// Source: Hesterberg 2015, What Teachers Should Know About the Bootstrap.
func expandedTail(freedom, level float64) float64 {
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: freedom}.Quantile((1 + level) / 2)
	return distuv.UnitNormal.CDF(-t * math.Sqrt((freedom+1)/freedom))
}

// geometricMiddle leaves equal values as they are, to the last bit.
func geometricMiddle(a, b float64) float64 {
	if a == b {
		return a
	}
	return math.Sqrt(a) * math.Sqrt(b)
}

func arithmeticMiddle(a, b float64) float64 { return sortedMedian([]float64{a, b}) }
