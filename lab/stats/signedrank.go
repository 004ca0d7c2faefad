package stats

import (
	"math"
	"sort"

	"gonum.org/v1/gonum/stat/distuv"
)

// exactSignedRanks is the largest number of pairs with an exact null
// distribution. Above, the normal approximation differs from it by less than
// 0.001 where p is below 0.1.
const exactSignedRanks = 50

// signedRanks is the null distribution of the signed-rank sum of n pairs
// without ties: the sum of those ranks of 1 … n whose sign, a fair coin, is
// positive.
//
// Source: Hollander, Wolfe & Chicken, Nonparametric Statistical Methods, 3rd
// ed., 3.1.
type signedRanks struct {
	n   int
	cdf []float64 // by sum; nil above exactSignedRanks
}

func newSignedRanks(n int) signedRanks {
	if n > exactSignedRanks {
		return signedRanks{n: n}
	}
	share := make([]float64, n*(n+1)/2+1)
	share[0] = 1
	for rank, reach := 1, 1; rank <= n; rank, reach = rank+1, reach+rank+1 {
		for sum := reach; sum >= 0; sum-- {
			share[sum] /= 2
			if sum >= rank {
				share[sum] += share[sum-rank] / 2
			}
		}
	}
	for sum := 1; sum < len(share); sum++ {
		share[sum] += share[sum-1]
	}
	return signedRanks{n, share}
}

// sums is the number of Walsh averages, which is also the largest rank sum.
func (r signedRanks) sums() int { return r.n * (r.n + 1) / 2 }

// twoSided is the two-sided p-value of a rank sum; seen is the smaller side.
func (r signedRanks) twoSided(seen int) float64 {
	if r.cdf != nil {
		return min(1, 2*r.cdf[min(seen, r.sums())])
	}
	k := float64(r.n)
	beyond := k*(k+1)/4 - float64(seen) - 0.5 // continuity correction
	deviation := math.Sqrt(k * (k + 1) * (2*k + 1) / 24)
	return min(1, 2*distuv.UnitNormal.CDF(-beyond/deviation))
}

// critical returns the largest smaller side with a p-value of at most alpha; −1
// if there is none.
func (r signedRanks) critical(alpha float64) int {
	return sort.Search(r.sums()/2+1, func(seen int) bool { return r.twoSided(seen) > alpha }) - 1
}
