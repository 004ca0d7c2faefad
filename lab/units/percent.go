package units

import (
	"fmt"
	"math/big"
)

const percentRemedy = `write a percentage such as "2%" or "0.5 %"`

// ParsePercent parses a percentage, "2%", "2 %" or "0.5%", and returns it as a
// fraction: 0.02. The sign is mandatory, because a bare 2 could mean 2 % or 200 %.
// The decimal value is divided exactly and rounded once.
func ParsePercent(s string) (float64, error) {
	q, err := split("percentage", s, percentRemedy)
	if err != nil {
		return 0, err
	}
	switch q.unit {
	case "%":
	case "":
		return 0, q.fail(q.at, "has no percent sign", fmt.Sprintf(`write "%s%%", or "%s%%" if a fraction was meant`, q.number, q.hundredfold()))
	default:
		return 0, q.fail(q.at, fmt.Sprintf("%q is not a percent sign", q.unit), percentRemedy)
	}
	r, ok := new(big.Rat).SetString(q.number)
	if !ok {
		return 0, q.fail(0, "is not a number", percentRemedy)
	}
	f, _ := r.Quo(r, big.NewRat(100, 1)).Float64()
	return f, nil
}

// hundredfold prints the number times 100, exactly.
func (q quantity) hundredfold() string {
	r, ok := new(big.Rat).SetString(q.number)
	if !ok {
		return q.number
	}
	r.Mul(r, big.NewRat(100, 1))
	decimals, _ := r.FloatPrec()
	return r.FloatString(decimals)
}

// FormatPercent prints a fraction as a percentage with three significant
// digits, 0.02 as "2 %"; NaN and infinities print as "—".
func FormatPercent(fraction float64) string {
	if !Finite(fraction * 100) {
		return absent
	}
	return three(fraction*100) + " %"
}
