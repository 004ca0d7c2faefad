package stats

import (
	"fmt"
	"math"
	"slices"
)

// Estimate compares a subject with its baseline: an estimate, its interval, and
// the p-value of the test that the interval inverts. If n is large enough for
// the level, P is at most 1 − level exactly where the interval excludes "no
// difference" (a ratio of 1, a difference of 0).
type Estimate struct {
	Interval
	P      float64 // two-sided: probability of an outcome at least as extreme without a difference
	Effect float64 // matched-pairs rank-biserial correlation, −1..+1
	Floor  float64 // the smallest P that so many pairs can have
}

// Ratio estimates subject / baseline from pairs: element i of both is from
// block i. The estimate is Hodges and Lehmann's of the log ratios within
// blocks: the median of their Walsh averages. So what a block does to both
// sides cancels. The interval holds the Walsh averages that the signed-rank
// test at 1 − level does not reject; it is exact up to 50 pairs.
//
// Interval.Level is the real confidence of the exact test: the smallest
// attainable one that is at least level, 0.969 for 6 pairs and 0.953 for 7.
// With too few pairs for level (5 at 0.95) the interval is the smallest and the
// largest ratio, and Level is below level.
//
// Ties: a Walsh average of exactly 1 counts against a difference on both sides.
// A pair of equal values gives one, and so do two opposite ratios. The test is
// then conservative, as if each tie were broken in the less favourable way. P
// and interval agree with ties too.
//
// It is an error if the lengths differ, or if a value is not finite and positive,
// because then a pair has no ratio.
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

// Difference estimates subject − baseline, in the unit of the values, from pairs like
// those of Ratio. The values may be 0 or negative.
func Difference(subject, baseline []float64, level float64) (e Estimate, ok bool, err error) {
	if err := paired(subject, baseline); err != nil {
		return Estimate{}, false, err
	}
	differences := make([]float64, len(subject))
	for i, s := range subject {
		differences[i] = s - baseline[i]
	}
	if err := finite(differences); err != nil { // two finite values may be too far apart
		return Estimate{}, false, err
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
		Floor:  null.twoSided(0),
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
			return nil, fmt.Errorf("the figures of pair %d of %d are %v and %v, and a ratio needs figures above zero", i+1, len(subject), s, b)
		}
		logs[i] = logRatio(s, b)
	}
	return logs, nil
}

// logRatio returns log(s / b). Opposite ratios have exactly opposite
// logarithms.
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

// ratioOf returns exp(log), never rounded across 1.
func ratioOf(log float64) float64 {
	ratio := math.Exp(log)
	if ratio == 1 && log != 0 {
		return math.Nextafter(1, 1+math.Copysign(1, log))
	}
	return ratio
}

// paired returns an error for values that are not finite or not in pairs.
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

// looked is the share of the error probability that remains if a run checks its
// intervals after every block and ends once they are narrow enough. An interval
// that is narrow by chance ends the run early. In simulations such intervals at
// a level of 0.95 hold the true value with 0.925 to 0.955.
const looked = 0.9

// Looked returns the level for the intervals of a run that ends once they are
// narrow enough. Made at this level, they hold the true value with level. The
// rule that ends the run and the reports use the same intervals.
func Looked(level float64) float64 { return 1 - looked*(1-level) }

// AfterLooks corrects an estimate that was made at a level from Looked: Level
// and P become those that hold after the checks.
func (e Estimate) AfterLooks() Estimate {
	e.Level = max(0, 1-(1-e.Level)/looked)
	e.P, e.Floor = AfterLooks(e.P), AfterLooks(e.Floor)
	return e
}

// AfterLooks corrects a p-value for the checks of the precision during a run.
func AfterLooks(p float64) float64 { return min(1, p/looked) }
