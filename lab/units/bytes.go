package units

import (
	"fmt"
	"math"
	"strings"
)

const sizeRemedy = `write a size such as "1390", "128k", "2M" or "1G" (k = 1024 bytes)`

// ParseBytes parses a size in bytes. The suffixes k, M, G and T mean 2^10, 2^20, 2^30
// and 2^40, as in buffer lengths of NTttcp, netperf and iperf3. Upper and lower case
// are equal; KiB, MiB, GiB and TiB mean the same. No suffix, or B, means bytes. A
// fraction is valid if it gives whole bytes ("1.5k").
//
// kB, KB, MB, GB and TB are errors: they mean 1024 for NTttcp and 1000 in the SI.
func ParseBytes(s string) (int64, error) {
	q, err := split("size", s, sizeRemedy)
	if err != nil {
		return 0, err
	}
	unit := strings.ToLower(q.unit)
	switch unit {
	case "", "b":
		return q.times(1, "bytes")
	case "k", "kib":
		return q.times(1<<10, "bytes")
	case "m", "mib":
		return q.times(1<<20, "bytes")
	case "g", "gib":
		return q.times(1<<30, "bytes")
	case "t", "tib":
		return q.times(1<<40, "bytes")
	case "kb", "mb", "gb", "tb":
		letter := q.unit[:1]
		if unit == "kb" {
			letter = "k"
		}
		return 0, q.fail(q.at, fmt.Sprintf("%s may mean powers of 1000 or of 1024", q.unit),
			fmt.Sprintf(`write "%s%s" for powers of 1024, or the number of bytes`, q.number, letter))
	}
	return 0, q.fail(q.at, fmt.Sprintf("%q is not a unit of size", q.unit), sizeRemedy)
}

// FormatBytes prints a size for people. A whole multiple of a unit prints as "128
// KiB", a small size as "1390 B". Another size has three significant digits: "2.31
// GiB". ParseBytes converts the first two forms back to the same number.
func FormatBytes(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	i, exact := 0, n
	for exact != 0 && exact%1024 == 0 && i < 4 {
		exact /= 1024
		i++
	}
	if exact > -1024 && exact < 1024 {
		return fmt.Sprintf("%d %s", exact, units[i])
	}
	if n > -100_000 && n < 100_000 {
		return fmt.Sprintf("%d B", n)
	}
	f := float64(n)
	for i = 0; i < len(units)-1 && math.Abs(f) >= 1023.5; i++ {
		f /= 1024
	}
	return three(f) + " " + units[i]
}
