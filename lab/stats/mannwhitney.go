package stats

import "math"

// exactRankSums bounds the smaller side's values times all values for which
// rank sums are counted out: 25 and 25, or 3 and 600. The table has some
// millions of steps at most.
const exactRankSums = 2000

// MannWhitney tests whether the values of subject tend to be larger or smaller
// than those of baseline, where nothing pairs them.
//
// P is two-sided: twice the rarer tail. For samples of the usual size it is
// exact, ties included: the share of all ways to deal the observed ranks to the
// two sides that are at least so extreme. Above (see exactRankSums), it is the
// normal approximation with the corrections for ties and continuity. Effect is
// Cliff's delta: the share of pairs, one value of each side, where the subject
// is larger less the share where it is smaller. N counts both sides.
//
// Source: Hollander, Wolfe & Chicken, Nonparametric Statistical Methods, 3rd
// ed., 4.1; Cliff 1993 for the effect.
func MannWhitney(subject, baseline []float64) (t Test, ok bool, err error) {
	if err := bothFinite("rank-sum test", subject, baseline); err != nil || len(subject) == 0 || len(baseline) == 0 {
		return Test{}, false, err
	}
	n, m := len(subject), len(baseline)
	ranks := rankOf(append(append(make([]float64, 0, n+m), subject...), baseline...))
	sum := 0
	for _, d := range ranks.doubled[:n] {
		sum += d
	}
	// U counts the pairs that the subject wins, a tie as a half.
	u := float64(sum)/2 - float64(n*(n+1))/2
	t = Test{Effect: 2*u/float64(n*m) - 1, N: n + m, Floor: rankSumFloor(n, m)}
	if min(n, m)*(n+m) <= exactRankSums {
		t.P = rankSumExact(ranks.units(), n)
	} else {
		t.P = rankSumNormal(n, m, ranks.ties, u)
	}
	return t, true, nil
}

// rankSumExact returns the two-sided p of the rank sum of the first n ranks.
// The smaller side's is counted: the two sums add up to a constant.
func rankSumExact(ranks []int, n int) float64 {
	side := ranks[:n]
	if 2*n > len(ranks) {
		side = ranks[n:]
	}
	seen := 0
	for _, r := range side {
		seen += r
	}
	ways, total := rankSumWays(ranks, len(side))
	return twoSided(ways, total, seen)
}

// rankSumWays counts, for every sum, the ways to choose k of ranks that have
// it, and all ways together.
func rankSumWays(ranks []int, k int) (ways []float64, total float64) {
	largest := 0
	for _, r := range ranks {
		largest = max(largest, r)
	}
	table := make([][]float64, k+1)
	for i := range table {
		table[i] = make([]float64, i*largest+1)
	}
	table[0][0] = 1
	for done, r := range ranks {
		for chosen := min(k, done+1); chosen >= 1; chosen-- {
			to := table[chosen]
			for sum, w := range table[chosen-1] {
				to[sum+r] += w
			}
		}
	}
	for _, w := range table[k] {
		total += w
	}
	return table[k], total
}

// rankSumNormal returns the two-sided p of u; 1 where all values are equal.
func rankSumNormal(n, m int, ties, u float64) float64 {
	pairs, all := float64(n)*float64(m), float64(n+m)
	variance := pairs / 12 * (all + 1 - ties/(all*(all-1)))
	beyond := math.Abs(u-pairs/2) - 0.5
	if variance <= 0 || beyond <= 0 {
		return 1
	}
	return bothTails(beyond / math.Sqrt(variance))
}

// rankSumFloor returns the p of n and m values that do not overlap.
func rankSumFloor(n, m int) float64 {
	if min(n, m)*(n+m) > exactRankSums {
		return rankSumNormal(n, m, 0, float64(n)*float64(m))
	}
	ways := 1.0
	for i := range min(n, m) {
		ways = ways * float64(n+m-i) / float64(i+1)
	}
	return min(1, 2/ways)
}
