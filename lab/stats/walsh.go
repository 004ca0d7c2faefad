package stats

import "math"

// walsh represents the Walsh averages of sorted values: the n(n+1)/2 averages
// of two values, each value with itself too. They are not stored: bisection
// over the floating-point numbers finds an average, in O(n) a step.
//
// Source: Hollander, Wolfe & Chicken, Nonparametric Statistical Methods, 3rd
// ed., 3.2 and 3.3.
type walsh []float64

// average divides before it adds, so that huge values do not overflow.
func average(a, b float64) float64 { return a/2 + b/2 }

// upTo counts the averages that are at most x.
func (w walsh) upTo(x float64) int {
	count, end := 0, len(w)
	for i := 0; i < end; i++ {
		for end > i && average(w[i], w[end-1]) > x {
			end--
		}
		count += end - i
	}
	return count
}

// below counts the averages that are less than x.
func (w walsh) below(x float64) int { return w.upTo(math.Nextafter(x, math.Inf(-1))) }

// nth returns the k-th smallest average, from 1.
func (w walsh) nth(k int) float64 {
	low, high := ordinal(w[0]), ordinal(w[len(w)-1])
	for low < high {
		if mid := low + (high-low)/2; w.upTo(number(mid)) >= k {
			high = mid
		} else {
			low = mid + 1
		}
	}
	return number(low) + 0 // never −0
}

// median is the Hodges–Lehmann estimate of the values' centre.
func (w walsh) median() float64 {
	all := len(w) * (len(w) + 1) / 2
	return average(w.nth((all+1)/2), w.nth(all/2+1))
}

const signBit = 1 << 63

// ordinal numbers the finite floats in ascending order, without a gap.
func ordinal(x float64) uint64 {
	if bits := math.Float64bits(x); bits&signBit != 0 {
		return ^bits
	} else {
		return bits | signBit
	}
}

// number is the inverse of ordinal.
func number(at uint64) float64 {
	if at&signBit != 0 {
		return math.Float64frombits(at &^ signBit)
	}
	return math.Float64frombits(^at)
}
