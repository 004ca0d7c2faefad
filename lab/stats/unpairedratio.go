package stats

import (
	"fmt"
	"math"
	"slices"
)

// UnpairedRatio returns the median of subject over the median of baseline,
// where the two come from different runs: nothing pairs their values, of which
// there may be more on one side, and whatever the machine did between the runs
// is in the ratio. The interval is that of all pairs of resamples of both
// sides, a percentile interval with Hesterberg's expansion. In simulations like
// those of RatioOfMedians it holds the true ratio with 0.97 to 0.99 for a level
// of 0.95.
//
// Where a side has fewer than MinimumTrials(level) values, the interval goes
// from the smallest subject over the largest baseline to the reverse, and Level
// is the confidence that both medians lie within their extremes. N counts the
// smaller side.
//
// It is an error where a value is not finite, a baseline is not positive or a
// subject is negative.
func UnpairedRatio(subject, baseline []float64, level float64) (iv Interval, ok bool, err error) {
	if err := levelInRange(level); err != nil {
		return Interval{}, false, err
	}
	if err := haveRatio(subject, baseline); err != nil || len(subject) == 0 || len(baseline) == 0 {
		return Interval{}, false, err
	}
	s, b := slices.Sorted(slices.Values(subject)), slices.Sorted(slices.Values(baseline))
	n := min(len(s), len(b))
	iv = Interval{
		Median: sortedMedian(s) / sortedMedian(b),
		Low:    s[0] / b[len(b)-1],
		High:   s[len(s)-1] / b[0],
		N:      n,
		Level:  min(level, coverage(len(s), 1)*coverage(len(b), 1)),
	}
	if math.IsInf(iv.High, 0) {
		return Interval{}, false, fmt.Errorf("ratio of %v to %v: %w", s[len(s)-1], b[0], ErrNotFinite)
	}
	if n >= MinimumTrials(level) {
		iv.Level = level
		tail := expandedTail(welchFreedom(len(s), len(b)), level)
		above := resampledMedians(s, arithmeticMiddle)
		below := resampledMedians(b, arithmeticMiddle)
		outer := iv
		iv.Low = quotientQuantile(above, below, tail, outer.Low, outer.High)
		iv.High = quotientQuantile(above, below, 1-tail, outer.Low, outer.High)
	}
	iv.hold(iv.Median)
	return iv, true, nil
}

// welchFreedom is Welch's number of degrees of freedom for two sides whose
// values vary alike: n + m − 2 where they are as many, the smaller side's where
// the other has many more.
func welchFreedom(n, m int) float64 {
	a, b := 1/float64(n), 1/float64(m)
	return (a + b) * (a + b) / (a*a/float64(n-1) + b*b/float64(m-1))
}

// quotientQuantile returns the smallest x in [low, high] that the quotient of
// two independent medians is at most with probability p. It halves the range
// until no number lies between: the quotients themselves would be n⁴ values.
func quotientQuantile(above, below medians, p, low, high float64) float64 {
	if quotientUpTo(above, below, low) >= p {
		return low
	}
	for {
		mid := arithmeticMiddle(low, high)
		if mid <= low || mid >= high {
			return high
		}
		if quotientUpTo(above, below, mid) >= p {
			high = mid
		} else {
			low = mid
		}
	}
}

// quotientUpTo is the probability that a quotient is at most x: for each
// median below, that the one above is at most x times as large. Both ascend, so
// one walk along each is enough.
func quotientUpTo(above, below medians, x float64) float64 {
	sum, upTo, i := 0.0, 0.0, 0
	for _, b := range below {
		for ; i < len(above) && above[i].value/b.value <= x; i++ {
			upTo += above[i].weight
		}
		sum += b.weight * upTo
	}
	return sum
}

// haveRatio refuses sides whose medians have no ratio, and says where.
func haveRatio(subject, baseline []float64) error {
	if err := bothFinite("ratio", subject, baseline); err != nil {
		return err
	}
	for i, s := range subject {
		if s < 0 {
			return fmt.Errorf("subject value %d of %d is %v: a negative value has no ratio", i+1, len(subject), s)
		}
	}
	for i, b := range baseline {
		if b <= 0 {
			return fmt.Errorf("baseline value %d of %d is %v: nothing has a ratio to it", i+1, len(baseline), b)
		}
	}
	return nil
}
