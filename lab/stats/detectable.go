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

// DetectableRatio returns the smallest relative difference r > 0 such that a
// true ratio of 1 + r, or of 1/(1+r), would be found by WilcoxonSignedRank at
// significance alpha with probability power, given so many blocks whose log
// ratios vary as they do in subject and baseline. It is what stands beside "no
// difference shows". Where the ratio does not vary at all it is 0: any
// difference would show.
//
// The formula is the power of Student's t (noncentral) for 3/π of the pairs, at
// the level that the exact test really has below alpha. The standard deviation
// is the larger of the sample's and of the normal-consistent median deviation.
// In simulations what 0.8 of experiments should find is found by 0.7 (six
// blocks) to 0.85: the spread of few blocks is not known well.
//
// ok is false with fewer than two pairs, with so few that not even the most
// extreme outcome reaches alpha, and where a subject is zero, which has no
// logarithm. Errors are those of PairedRatio.
func DetectableRatio(subject, baseline []float64, alpha, power float64) (r float64, ok bool, err error) {
	if err := powerInRange(alpha, power); err != nil {
		return 0, false, err
	}
	ratios, err := pairRatios(subject, baseline)
	n := len(ratios)
	if err != nil || n < 2 || slices.Contains(ratios, 0) {
		return 0, false, err
	}
	level := signedRankLevel(n, alpha)
	if level == 0 {
		return 0, false, nil
	}
	deviation := spread(logarithms(ratios))
	return relative(deviation / math.Sqrt(float64(n)*rankEfficiency) * detectableShift(float64(n-1), level, power))
}

// DetectableUnpaired is DetectableRatio for the samples of two runs, which
// MannWhitney compares. The sides may vary differently and differ in length.
func DetectableUnpaired(subject, baseline []float64, alpha, power float64) (r float64, ok bool, err error) {
	if err := powerInRange(alpha, power); err != nil {
		return 0, false, err
	}
	n, m := len(subject), len(baseline)
	if err := haveRatio(subject, baseline); err != nil || min(n, m) < 2 || slices.Contains(subject, 0) {
		return 0, false, err
	}
	level := rankSumLevel(n, m, alpha)
	if level == 0 {
		return 0, false, nil
	}
	s, b := spread(logarithms(subject)), spread(logarithms(baseline))
	deviation := math.Sqrt((s*s/float64(n) + b*b/float64(m)) / rankEfficiency)
	return relative(deviation * detectableShift(float64(n+m-2), level, power))
}

// relative turns a difference of logarithms into one of ratios.
func relative(shift float64) (r float64, ok bool, err error) {
	r = math.Expm1(shift)
	return r, !math.IsInf(r, 0) && !math.IsNaN(r), nil
}

func logarithms(xs []float64) []float64 {
	logs := make([]float64, len(xs))
	for i, x := range xs {
		logs[i] = math.Log(x)
	}
	return logs
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

// signedRankLevel returns the largest p at most alpha that n untied pairs can
// have, 0 for none.
func signedRankLevel(n int, alpha float64) float64 {
	if n > exactSignedRanks {
		return alpha
	}
	return attained(signedRankWays(oneTo(n)), math.Ldexp(1, n), alpha)
}

// rankSumLevel is signedRankLevel for n and m unpaired values.
func rankSumLevel(n, m int, alpha float64) float64 {
	if min(n, m)*(n+m) > exactRankSums {
		return alpha
	}
	ways, total := rankSumWays(oneTo(n+m), min(n, m))
	return attained(ways, total, alpha)
}

// attained sums the two tails of a symmetric null distribution as far as alpha
// allows.
func attained(ways []float64, total, alpha float64) float64 {
	sum, level := 0.0, 0.0
	for _, w := range ways {
		if sum += w; min(1, 2*sum/total) > alpha {
			break
		}
		level = 2 * sum / total
	}
	return level
}

func oneTo(n int) []int {
	ranks := make([]int, n)
	for i := range ranks {
		ranks[i] = i + 1
	}
	return ranks
}

func powerInRange(alpha, power float64) error {
	if !(0 < alpha && alpha < power && power < 1) {
		return fmt.Errorf("detectable difference at significance %v with power %v: want 0 < significance < power < 1, as 0.05 and 0.8", alpha, power)
	}
	return nil
}
