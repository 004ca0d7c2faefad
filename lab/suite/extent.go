package suite

import (
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strings"
)

// extent is the range of a difference or of a value in a hypothesis, as in the suite:
// "-15 ± 5 %", ">= 9 Gbps". bounds converts it to the unit of a metric.
type extent struct {
	bound    string // ">=", "<=", or "" for middle ± margin
	negative bool   // middle is below 0
	middle   string // decimal number without sign
	margin   string // decimal number; "" with a bound
	unit     string
	printed  string
}

const extentRemedy = `write ">= 9 Gbps", "<= 95 %" or "1600 ± 160 Mbit/s": the margin has the same unit; only a difference may be negative`

var (
	unitPattern     = `([a-zA-Zµ%1][a-zA-Z/ -]*|) *$`
	twoSidedExtent  = regexp.MustCompile(`^ *([-−]?)(` + decimal + `) *(?:±|\+-|\+/-) *(` + decimal + `) *` + unitPattern)
	oneSidedExtent  = regexp.MustCompile(`^ *(>=|<=|≥|≤) *([-−]?)(` + decimal + `) *` + unitPattern)
	differenceRange = extentForm(true)
	valueRange      = extentForm(false)
)

// extentForm is the notation of a range. Only a signed range may be negative.
func extentForm(signed bool) single[extent] {
	pattern := "(" + twoSidedExtent.String() + ")|(" + oneSidedExtent.String() + ")"
	if !signed {
		pattern = strings.ReplaceAll(pattern, "([-−]?)", "")
	}
	return single[extent]{"a range with its unit", extentRemedy, func(text string) (extent, string, string) {
		e, problem := parseExtent(text, signed)
		return e, problem, extentRemedy
	}, object{"type": "string", "pattern": pattern}}
}

func parseExtent(text string, signed bool) (e extent, problem string) {
	minus := ""
	if p := oneSidedExtent.FindStringSubmatch(text); p != nil {
		e.bound, minus, e.middle, e.unit = p[1], p[2], p[3], p[4]
	} else if p := twoSidedExtent.FindStringSubmatch(text); p != nil {
		minus, e.middle, e.margin, e.unit = p[1], p[2], p[3], p[4]
	} else {
		return extent{}, fmt.Sprintf("%q is not a range", clip(text))
	}
	if e.negative = minus != ""; e.negative && !signed {
		return extent{}, fmt.Sprintf("%q is negative, and a value is not", clip(text))
	}
	e.unit, e.printed = strings.TrimSpace(e.unit), strings.TrimSpace(text)
	return e, ""
}

// bounds returns the range in the given SI unit. They are computed exactly and rounded
// once. A missing bound is the largest number or its negative, because JSON has no
// infinity; a value has at least 0.
func (e extent) bounds(unit string, signed bool) (low, high float64, problem, remedy string) {
	middle, problem, remedy := exactly(strings.TrimSpace(e.middle+" "+e.unit), unit)
	if problem != "" {
		return 0, 0, problem, remedy
	}
	if e.negative {
		middle.Neg(middle)
	}
	low, high = 0, math.MaxFloat64
	if signed {
		low = -math.MaxFloat64
	}
	switch least := low; e.bound {
	case ">=", "≥":
		low, _ = middle.Float64()
	case "<=", "≤":
		high, _ = middle.Float64()
	default:
		margin, _, _ := exactly(strings.TrimSpace(e.margin+" "+e.unit), unit) // its notation is that of middle
		low, _ = new(big.Rat).Sub(middle, margin).Float64()
		high, _ = new(big.Rat).Add(middle, margin).Float64()
		if low < least {
			return 0, 0, fmt.Sprintf("the margin of %q reaches below 0, where no value is", e.printed), extentRemedy
		}
	}
	if low >= high {
		return 0, 0, fmt.Sprintf("%q leaves no range", e.printed), extentRemedy
	}
	return low, high, "", ""
}
