package units

import (
	"fmt"
	"strings"
)

const rateRemedy = `write a rate in bits per second such as "400Mbit", "10Gbit" or "2.5Gbit/s" (k = 1000 bits)`

var rateFactors = map[byte]int64{'k': 1e3, 'm': 1e6, 'g': 1e9, 't': 1e12}

// ParseRate parses a rate in bits per second. Prefixes k, M, G and T are decimal, in
// upper or lower case. A prefix is valid alone ("4G") or before bit, bit/s, bits/s,
// b/s or bps. A bare number is in bits per second. A fraction is valid if it gives
// whole bits ("2.5Gbit").
//
// A capital B means bytes and is an error, because no figure of the lab is in bytes
// per second. Binary prefixes are errors too. "bps" means bits here, as in iperf3; for
// tc(8) it means bytes.
func ParseRate(s string) (int64, error) {
	q, err := split("rate", s, rateRemedy)
	if err != nil {
		return 0, err
	}
	prefix, factor := 0, int64(1)
	if q.unit != "" {
		if f, ok := rateFactors[q.unit[0]|0x20]; ok {
			prefix, factor = 1, f
		}
	}
	base := q.unit[prefix:]
	if strings.HasPrefix(base, "B") && !strings.HasPrefix(strings.ToLower(base), "bit") {
		return 0, q.fail(q.at, fmt.Sprintf("%s means bytes", q.unit), bitsRemedy(q, prefix))
	}
	switch strings.ToLower(base) {
	case "", "bit", "bits", "bit/s", "bits/s", "b", "b/s", "bps":
		return q.times(factor, "bits per second")
	}
	return 0, q.fail(q.at, fmt.Sprintf("%q is not a unit of rate", q.unit), rateRemedy)
}

// bitsRemedy returns the remedy for a rate in bytes per second: the same rate in bits
// per second.
func bitsRemedy(q quantity, prefix int) string {
	n, err := q.times(8, "bits per second")
	if err != nil {
		return rateRemedy
	}
	return fmt.Sprintf(`rates are in bits per second: write "%d%sbit"`, n, q.unit[:prefix])
}

// FormatRate prints bits per second with three significant digits,
// "9.18 Gbit/s"; NaN and infinities print as "—".
func FormatRate(bps float64) string {
	if !Finite(bps) {
		return absent
	}
	return inLargestUnit(bps, 1000, []string{"bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"})
}
