package stats

import (
	"fmt"
	"math"
	"slices"
)

// Estimate is how a subject stands to its baseline: one estimate, its interval
// and the p-value of the test that the interval inverts. P is at most 1 − level
// exactly where the interval excludes "no difference" (a ratio of 1, a
// difference of 0) and n is large enough for the level.
type Estimate struct {
	Interval
	P      float64 // two-sided; of an outcome at least so extreme if nothing differs
	Effect float64 // matched-pairs rank-biserial correlation, −1..+1
	Floor  float64 // the smallest P that so many pairs can have
}

// Ratio estimates subject / baseline from pairs, element i of both from block
// i. The estimate is Hodges and Lehmann's of the logarithms of the ratios within
// blocks: the median of their Walsh averages, so that what a block does to both
// sides cancels. The interval holds the Walsh averages that the signed-rank test
// at 1 − level does not reject; it is exact up to 50 pairs.
//
// Interval.Level is the confidence that the exact test really has: the smallest
// attainable that is at least level, 0.969 for 6 pairs and 0.953 for 7. With too
// few pairs for level (5 at 0.95) the interval is the smallest and the largest
// ratio, and Level is below.
//
// Ties: a Walsh average of exactly 1 (a pair of equal values is one, and so are
// two opposite ratios) counts against a difference on both sides. The test is
// then conservative, as if each tie were broken the less favourable way, and P
// and interval agree with ties too.
//
// It is an error where lengths differ or a value is not finite and positive: such a pair has no
// ratio. Difference takes it.
func Ratio(subject, baseline []float64, level float64) (e Estimate, ok bool, err error) {
	logs, err := logRatios(subject, baseline)
	if err != nil {
		return Estimate{}, false, err
	}
	if e, ok, err = centre(logs, level); !ok || err != nil {
		return Estimate{}, false, err
	}
	e.Median, e.Low, e.High = ratioOf(e.Median), ratioOf(e.Low), ratioOf(e.High)
	if math.IsInf(e.High, 0) {
		return Estimate{}, false, fmt.Errorf("ratio: %w", ErrNotFinite)
	}
	return e, true, nil
}

// Difference estimates subject − baseline of pairs, as Ratio does its ratio.
func Difference(subject, baseline []float64, level float64) (e Estimate, ok bool, err error) {
	if err := paired(subject, baseline); err != nil {
		return Estimate{}, false, err
	}
	differences := make([]float64, len(subject))
	for i, s := range subject {
		differences[i] = s - baseline[i]
	}
	if err := finite(differences); err != nil {
		return Estimate{}, false, fmt.Errorf("difference: %w", err)
	}
	return centre(differences, level)
}

// centre estimates the centre of symmetry of xs, which are finite, and tests
// whether it is 0.
func centre(xs []float64, level float64) (e Estimate, ok bool, err error) {
	if err := levelInRange(level); err != nil {
		return Estimate{}, false, err
	}
	if len(xs) == 0 {
		return Estimate{}, false, nil
	}
	averages := walsh(slices.Sorted(slices.Values(xs)))
	null := newSignedRanks(len(xs))
	all := null.sums()
	negative, positive := averages.below(0), all-averages.upTo(0)
	k := max(1, null.critical(1-level)+1)
	return Estimate{
		Interval: Interval{
			Median: averages.median(),
			Low:    averages.nth(k),
			High:   averages.nth(all + 1 - k),
			N:      len(xs),
			Level:  max(0, 1-null.twoSided(k-1)),
		},
		P:      null.twoSided(all - max(negative, positive)),
		Effect: float64(positive-negative) / float64(all),
		Floor:  null.floor(),
	}, true, nil
}

// logRatios returns log(subject[i] / baseline[i]).
func logRatios(subject, baseline []float64) ([]float64, error) {
	if err := paired(subject, baseline); err != nil {
		return nil, err
	}
	logs := make([]float64, len(subject))
	for i, s := range subject {
		b := baseline[i]
		if s <= 0 || b <= 0 {
			return nil, fmt.Errorf("pair %d of %d, %v over %v, has no ratio", i+1, len(subject), s, b)
		}
		logs[i] = logRatio(s, b)
	}
	return logs, nil
}

// logRatio gives opposite ratios opposite logarithms, to the last bit.
func logRatio(s, b float64) float64 {
	large := max(s, b) / min(s, b)
	log := math.Log(large)
	if math.IsInf(large, 0) {
		log = math.Log(max(s, b)) - math.Log(min(s, b))
	}
	if s < b {
		return -log
	}
	return log
}

// ratioOf is exp, kept on the side of 1 that log is on.
func ratioOf(log float64) float64 {
	ratio := math.Exp(log)
	if ratio == 1 && log != 0 {
		return math.Nextafter(1, 1+math.Copysign(1, log))
	}
	return ratio
}

// paired refuses values that are not finite or do not come in pairs.
func paired(subject, baseline []float64) error {
	if len(subject) != len(baseline) {
		return fmt.Errorf("%d subject and %d baseline values: they must come in pairs, one of each a block", len(subject), len(baseline))
	}
	if err := finite(subject); err != nil {
		return fmt.Errorf("subject: %w", err)
	}
	if err := finite(baseline); err != nil {
		return fmt.Errorf("baseline: %w", err)
	}
	return nil
}
