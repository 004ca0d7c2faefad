package stats

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
)

// rankEfficiency is Pitman's asymptotic relative efficiency of both Wilcoxon
// tests for normal noise: Student's t needs this share of the pairs that a rank
// test needs. With heavier tails it is larger.
const rankEfficiency = 3 / math.Pi

// DetectableRatio returns the smallest relative difference r > 0 that the test
// of Ratio would find: a true ratio of 1 + r, or of 1/(1+r), at significance
// alpha with probability power. It assumes as many blocks as subject and
// baseline have, with the same spread of log ratios. Reports show it beside "no
// difference shows". It is 0 where the ratio does not vary: any difference
// would show.
//
// The formula is the power of Student's t (noncentral) for 3/π of the pairs, at
// the exact test's real level below alpha. The standard deviation is the larger
// of the sample's and of the normal-consistent median deviation. In
// simulations, differences that 0.8 of experiments should find are found by 0.7
// (six blocks) to 0.85, because few blocks do not show their spread well.
//
// ok is false with so few pairs that even the most extreme outcome does not
// reach alpha. Errors are those of Ratio.
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

// spread returns the larger of two estimates: the standard deviation of xs,
// corrected for its bias with few normal values, and the median absolute
// deviation, scaled to agree with it.
func spread(xs []float64) float64 {
	if slices.Min(xs) == slices.Max(xs) {
		return 0
	}
	centre := middleOf(xs)
	apart := make([]float64, len(xs))
	for i, x := range xs {
		apart[i] = math.Abs(x - centre)
	}
	const consistent = 1.482602218505602 // 1 / Φ⁻¹(¾)
	return max(stat.StdDev(xs, nil)/meanDeviation(len(xs)), consistent*middleOf(apart))
}

// meanDeviation is the mean of the sample standard deviation (n − 1) of n
// standard normal values: c₄, 0.952 for six.
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
