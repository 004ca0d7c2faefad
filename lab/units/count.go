package units

import (
	"math"
	"strconv"
)

// FormatCount prints a count or a count per second. Below 1000 it has three
// significant digits ("8.25"). Below a million it has all digits, with separated
// thousands ("11,050"). Larger counts print as "1.23 M" or "4.5 G", NaN and infinities
// as "—".
func FormatCount(n float64) string {
	if !Finite(n) {
		return absent
	}
	switch a := math.Abs(n); {
	case a < 999.5:
		return three(n)
	case a < 999_999.5:
		return thousands(int64(math.Round(n)))
	}
	return inLargestUnit(n/1e6, 1000, []string{"M", "G", "T"})
}

func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
