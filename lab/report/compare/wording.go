package compare

import (
	"fmt"
	"math"
	"strconv"

	"windtunnel/lab/report/quantity"
	"windtunnel/lab/units"
)

// says returns the row's verdict in words.
func (r *Row) says() string {
	switch r.Verdict {
	case Better, Worse, Differs:
		change := r.change()
		if units.Finite(change) {
			return string(r.Verdict) + " by " + tenths(math.Abs(change))
		}
	case Suggested:
		if change := r.change(); units.Finite(change) {
			return fmt.Sprintf("%s: %s, not after the correction", Suggested, quantity.Change(1+change, math.Inf(1)))
		}
	case Alike:
		switch {
		case r.Smallest == nil:
		case *r.Smallest == 0:
			return fmt.Sprintf("%s (detectable: any)", Alike)
		default:
			return fmt.Sprintf("%s (detectable: %s)", Alike, tenths(*r.Smallest))
		}
	}
	return string(r.Verdict)
}

// name returns the scenario, such as "vxlan/stream". In a row that compares
// ratios it adds the baseline: "vxlan/stream / bridge/stream".
func (r *Row) name() string {
	if r.Baseline == "" {
		return r.Scenario
	}
	return r.Scenario + " / " + r.Baseline
}

// line is the row on one line, as gates and CI systems show it.
func (r *Row) line() string {
	text := fmt.Sprintf("%s %s: %s", r.name(), r.Metric.Label(), r.says())
	if r.A != nil && r.B != nil {
		text += fmt.Sprintf(", %s → %s", r.scale().Print(r.A.Median), r.scale().Print(r.B.Median))
	}
	if r.Ratio != nil {
		text += ", ratio " + bracketed(r.Ratio)
	}
	if r.Adjusted != nil {
		text += ", p " + probability(*r.Adjusted)
	}
	if r.Note != "" {
		text += " (" + r.Note + ")"
	}
	return text
}

// scale returns the unit of the row's figures; ratios to a baseline have no unit.
func (r *Row) scale() quantity.Scale {
	if r.Baseline != "" {
		return quantity.Scale{By: 1}
	}
	return quantity.ScaleOf(r.Metric, medians(r.A, r.B)...)
}

// figure prints the median of a side without its unit.
func (r *Row) figure(iv *quantity.Interval) string {
	if iv == nil {
		return "—"
	}
	median, _ := r.scale().Figure(quantity.Interval{Median: iv.Median, N: 1})
	return median
}

func medians(ivs ...*quantity.Interval) []float64 {
	var xs []float64
	for _, iv := range ivs {
		if iv != nil {
			xs = append(xs, iv.Median)
		}
	}
	return xs
}

// bracketed prints a ratio as "0.951 [0.940, 0.962]".
func bracketed(iv *quantity.Interval) string {
	if iv == nil {
		return "—"
	}
	shown := *iv
	shown.N = max(shown.N, 2) // with one run for each side the ratio still has an interval
	return quantity.RatioText(shown)
}

// tenths prints a fraction as "5.1 %", with more digits where it would read as
// zero.
func tenths(v float64) string {
	if v > 0 && v < 0.0005 {
		return strconv.FormatFloat(100*v, 'g', 2, 64) + " %"
	}
	decimals := 1
	if v >= 0.9995 {
		decimals = 0
	}
	return strconv.FormatFloat(100*v, 'f', decimals, 64) + " %"
}

func probability(p float64) string {
	if p < 0.001 {
		return "< 0.001"
	}
	return strconv.FormatFloat(p, 'f', 3, 64)
}

func optional(v *float64, print func(float64) string) string {
	if v == nil {
		return "—"
	}
	return print(*v)
}
