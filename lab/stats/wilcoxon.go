package stats

import (
	"fmt"
	"math"
)

// exactSignedRanks is the largest number of pairs whose signed ranks are
// counted out; above it the normal approximation is close. As SciPy has it.
const exactSignedRanks = 50

// WilcoxonSignedRank tests whether subject[i] tends to be larger or smaller
// than baseline[i] of the same block, by the logarithms of the ratios; where a
// value is zero or negative, and so has no logarithm, by the differences of
// all pairs instead. Pairs of equal values say nothing and are left out
// (SciPy's zero_method "wilcox"), though N and Floor count them.
//
// P is two-sided. With at most 50 pairs it is exact, ties included: the share
// of all 2ⁿ ways to give the observed ranks a sign that are at least so
// extreme. Above, it is the normal approximation with the correction for ties,
// without one for continuity. Effect is the matched-pairs rank-biserial
// correlation: the rank sum of the pairs where the subject is larger less that
// of the others, over both.
//
// Source: Hollander, Wolfe & Chicken, Nonparametric Statistical Methods, 3rd
// ed., 3.1; Kerby 2014 for the effect.
func WilcoxonSignedRank(subject, baseline []float64) (t Test, ok bool, err error) {
	if err := paired("signed-rank test", subject, baseline); err != nil || len(subject) == 0 {
		return Test{}, false, err
	}
	sizes, larger := contrasts(subject, baseline)
	ranks := rankOf(sizes)
	t = Test{P: 1, N: len(subject), Floor: signedRankFloor(len(subject))}
	if len(sizes) == 0 {
		return t, true, nil
	}
	positive, all := 0, 0
	units := ranks.units()
	for i, r := range units {
		all += r
		if larger[i] {
			positive += r
		}
	}
	t.Effect = float64(2*positive-all) / float64(all)
	if len(sizes) <= exactSignedRanks {
		t.P = twoSided(signedRankWays(units), math.Ldexp(1, len(units)), positive)
	} else {
		t.P = signedRankNormal(len(units), ranks.ties, t.Effect)
	}
	return t, true, nil
}

// contrasts returns, for every pair of unequal values, a size that orders the
// pairs as |log(subject/baseline)| does (or |subject − baseline|) and whether
// the subject is the larger. The larger over the smaller is one correctly
// rounded division: equal ratios tie, which their logarithms may not.
func contrasts(subject, baseline []float64) (sizes []float64, larger []bool) {
	ratios := true
	for i := range subject {
		ratios = ratios && subject[i] > 0 && baseline[i] > 0
	}
	for i, s := range subject {
		b := baseline[i]
		if s == b {
			continue
		}
		size := math.Abs(s - b)
		if ratios {
			size = max(s, b) / min(s, b)
		}
		sizes, larger = append(sizes, size), append(larger, s > b)
	}
	return sizes, larger
}

// signedRankWays counts, for every sum, the subsets of ranks that have it.
// With at most 50 ranks the counts are exact in a float64.
func signedRankWays(ranks []int) []float64 {
	total := 0
	for _, r := range ranks {
		total += r
	}
	ways := make([]float64, total+1)
	ways[0] = 1
	reach := 0
	for _, r := range ranks {
		reach += r
		for sum := reach; sum >= r; sum-- {
			ways[sum] += ways[sum-r]
		}
	}
	return ways
}

// signedRankNormal returns the two-sided p of n signed ranks whose rank sums
// differ by the share effect of their total.
func signedRankNormal(n int, ties, effect float64) float64 {
	k := float64(n)
	half := k * (k + 1) / 4
	deviation := math.Sqrt(k*(k+1)*(2*k+1)/24 - ties/48)
	return bothTails(math.Abs(effect) * half / deviation)
}

// signedRankFloor returns the p of n pairs that all differ the same way.
func signedRankFloor(n int) float64 {
	if n <= exactSignedRanks {
		return math.Ldexp(1, 1-n)
	}
	return signedRankNormal(n, 0, 1)
}

// paired refuses values that are not finite or do not come in pairs.
func paired(what string, subject, baseline []float64) error {
	if len(subject) != len(baseline) {
		return fmt.Errorf("%s of %d subject and %d baseline values: they must come in pairs, one of each a block", what, len(subject), len(baseline))
	}
	return bothFinite(what, subject, baseline)
}

// bothFinite refuses a NaN or an infinity and says where it is.
func bothFinite(what string, subject, baseline []float64) error {
	if err := finite(subject); err != nil {
		return fmt.Errorf("%s: subject: %w", what, err)
	}
	if err := finite(baseline); err != nil {
		return fmt.Errorf("%s: baseline: %w", what, err)
	}
	return nil
}
