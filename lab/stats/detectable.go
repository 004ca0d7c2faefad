package stats

import (
	"fmt"
	"math"
	"slices"
)

// rankEfficiency is how many pairs Student's t needs for what 100 do for a rank
// test, over 100, where noise is normal: Pitman's asymptotic relative
// efficiency of both Wilcoxon tests. With heavier tails it is more.
const rankEfficiency = 3 / math.Pi

// DetectableRatio returns the smallest relative difference r > 0 such that the
// test of Ratio would find a true ratio of 1 + r, or of 1/(1+r), at significance
// alpha with probability power, given so many blocks whose log ratios vary as
// they do in subject and baseline. It stands beside "no difference shows". Where
// the ratio does not vary at all it is 0: any difference would show.
//
// The formula is the power of Student's t (noncentral) for 3/π of the pairs, at
// the level that the exact test really has below alpha. The standard deviation
// is the larger of the sample's and of the normal-consistent median deviation.
// In simulations what 0.8 of experiments should find is found by 0.7 (six
// blocks) to 0.85: the spread of few blocks is not known well.
//
// ok is false with so few pairs that not even the most extreme outcome reaches
// alpha. Errors are those of Ratio.
func DetectableRatio(subject, baseline []float64, alpha, power float64) (r float64, ok bool, err error) {
	if err := powerInRange(alpha, power); err != nil {
		return 0, false, err
	}
	logs, err := logRatios(subject, baseline)
	if err != nil {
		return 0, false, err
	}
	null := newSignedRanks(len(logs))
	critical := null.critical(alpha)
	if critical < 0 || len(logs) < 2 {
		return 0, false, nil
	}
	n := float64(len(logs))
	r = math.Expm1(spread(logs) / math.Sqrt(n*rankEfficiency) * detectableShift(n-1, null.twoSided(critical), power))
	return r, finite([]float64{r}) == nil, nil
}

// spread returns the larger of the standard deviation of xs, without the bias
// that it has for few normal values, and of their median absolute deviation,
// scaled to agree with it.
func spread(xs []float64) float64 {
	if slices.Min(xs) == slices.Max(xs) {
		return 0
	}
	centre, mean := middleOf(xs), 0.0
	apart := make([]float64, len(xs))
	for i, x := range xs {
		apart[i] = math.Abs(x - centre)
		mean += (x - centre) / float64(len(xs))
	}
	squares := 0.0
	for _, x := range xs {
		squares += (x - centre - mean) * (x - centre - mean)
	}
	const consistent = 1.482602218505602 // 1 / Φ⁻¹(¾)
	return max(math.Sqrt(squares/float64(len(xs)-1))/meanDeviation(len(xs)), consistent*middleOf(apart))
}

// meanDeviation is what the sample standard deviation (n − 1) of n standard
// normal values is on average: c₄, 0.952 for six.
func meanDeviation(n int) float64 {
	above, _ := math.Lgamma(float64(n) / 2)
	below, _ := math.Lgamma(float64(n-1) / 2)
	return math.Sqrt(2/float64(n-1)) * math.Exp(above-below)
}

func powerInRange(alpha, power float64) error {
	if !(0 < alpha && alpha < power && power < 1) {
		return fmt.Errorf("detectable difference at significance %v with power %v: want 0 < significance < power < 1, as 0.05 and 0.8", alpha, power)
	}
	return nil
}
