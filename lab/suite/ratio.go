package suite

import (
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strings"
)

// band is the range of a ratio in a hypothesis, including its bounds. Without a lower
// bound low is 0. Without an upper bound high is math.MaxFloat64, because JSON has no
// infinity.
type band struct {
	low, high float64
	printed   string
}

const (
	mostRatio  = 1_000_000
	bandRemedy = `write "2 ± 10 %", "2 +- 10%", "1 ± 0.05", ">= 0.95" or "<= 1.1"`
	decimal    = `[0-9]{1,15}(?:\.[0-9]{1,15})?`
)

var (
	twoSided = regexp.MustCompile(`^ *(` + decimal + `) *(?:±|\+-|\+/-) *(` + decimal + `) *(%?) *$`)
	oneSided = regexp.MustCompile(`^ *(>=|<=|≥|≤) *(` + decimal + `) *$`)
)

// parseBand parses the range of a ratio. "± 10 %" is relative to the value before it,
// "± 0.05" is absolute. Bounds are computed exactly and rounded once.
func parseBand(text string) (b band, problem string) {
	b = band{high: math.MaxFloat64, printed: strings.TrimSpace(text)}
	if m := oneSided.FindStringSubmatch(text); m != nil {
		limit, problem := ratioOf(m[2])
		if problem != "" {
			return band{}, problem
		}
		if m[1] == ">=" || m[1] == "≥" {
			b.low, _ = limit.Float64()
		} else {
			b.high, _ = limit.Float64()
		}
		return b, ""
	}
	m := twoSided.FindStringSubmatch(text)
	if m == nil {
		return band{}, fmt.Sprintf("%q does not say where a ratio lies", clip(text))
	}
	value, problem := ratioOf(m[1])
	if problem != "" {
		return band{}, problem
	}
	margin, _ := new(big.Rat).SetString(m[2])
	if m[3] != "" {
		margin.Mul(margin, value).Quo(margin, big.NewRat(100, 1))
	}
	switch {
	case margin.Sign() == 0:
		return band{}, "no measurement shows a ratio to be exact: the margin is 0"
	case margin.Cmp(value) >= 0:
		return band{}, fmt.Sprintf("the margin of %q reaches down to a ratio of 0, which bounds nothing from below", clip(b.printed))
	}
	b.low, _ = new(big.Rat).Sub(value, margin).Float64()
	b.high, _ = new(big.Rat).Add(value, margin).Float64()
	if b.low == b.high {
		return band{}, fmt.Sprintf("the margin of %q is too small to be told from 0", clip(b.printed))
	}
	return b, ""
}

func ratioOf(number string) (*big.Rat, string) {
	r, ok := new(big.Rat).SetString(number)
	if !ok || r.Sign() <= 0 || r.Cmp(big.NewRat(mostRatio, 1)) > 0 {
		return nil, fmt.Sprintf("a ratio of %s is out of bounds: it lies above 0 and below %d", number, mostRatio)
	}
	return r, ""
}

// ratioBand is the notation of such a range.
var ratioBand = single[band]{"a ratio", bandRemedy, func(text string) (band, string, string) {
	b, problem := parseBand(text)
	return b, problem, bandRemedy
}, object{"type": "string", "pattern": "(" + twoSided.String() + ")|(" + oneSided.String() + ")"}}
