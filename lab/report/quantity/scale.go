// Package quantity has measured quantities for readers: intervals, their units and digits.
package quantity

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"windtunnel/lab/sample"
	"windtunnel/lab/units"
)

// Scale is a unit for readers. By is its size in the SI unit.
type Scale struct {
	Unit string
	By   float64
}

// scales lists the scales for each SI unit, from small to large.
var scales = map[string][]Scale{
	"bit/s":     {{"bit/s", 1}, {"kbit/s", 1e3}, {"Mbit/s", 1e6}, {"Gbit/s", 1e9}, {"Tbit/s", 1e12}},
	"ns":        {{"ns", 1}, {"µs", 1e3}, {"ms", 1e6}, {"s", 1e9}},
	"1/s":       {{"/s", 1}, {"k/s", 1e3}, {"M/s", 1e6}},
	"1":         {{"", 1}},
	"%":         {{"%", 1}},
	"ns/B":      {{"ns/byte", 1}},
	"ns/packet": {{"ns/packet", 1}, {"µs/packet", 1e3}},
	"B":         {{"B", 1}, {"MiB", 1 << 20}, {"GiB", 1 << 30}}, // packets have bytes
	"segments":  {{"", 1}},
	"packets":   {{"", 1}},
}

// ScaleOf returns one scale for all these values of m: the largest unit in which the
// largest value, rounded to three digits, is at least 1.
func ScaleOf(m sample.Metric, values ...float64) Scale {
	info, _ := sample.Describe(m)
	if info.Is(sample.Percent) {
		return Scale{"%", 0.01}
	}
	return ScaleOfUnit(info.Unit, values...)
}

// ScaleOfUnit is ScaleOf for an SI unit.
func ScaleOfUnit(unit string, values ...float64) Scale {
	steps := scales[unit]
	if len(steps) == 0 {
		return Scale{unit, 1}
	}
	top := 0.0
	for _, v := range values {
		top = max(top, math.Abs(v))
	}
	best := steps[0]
	for _, s := range steps {
		if top >= 0.9995*s.By { // with three digits it prints as 1.00
			best = s
		}
	}
	return best
}

// Figure prints an interval in this scale. The median has three significant digits,
// and the bounds have the same decimals. If the bounds would look equal, all have one
// decimal more. bounds is "" if there is only one trial.
func (s Scale) Figure(iv Interval) (median, bounds string) { return s.figure(iv, s.decimals(iv)) }

// Ratio prints a ratio like Figure. It adds decimals if a bound that is not 1 would be rounded to 1, or if a value would
// be rounded to one of limits.
func Ratio(iv Interval, limits ...float64) (median, bounds string) {
	s := Scale{By: 1}
	d := s.decimals(iv)
	misread := func(v float64, limits ...float64) bool {
		return slices.ContainsFunc(limits, func(limit float64) bool { return reads(v, limit, math.Pow10(-d)) })
	}
	for d < 6 && (misread(iv.Low, 1) || misread(iv.High, 1) || misread(iv.Median, limits...) || misread(iv.Low, limits...) || misread(iv.High, limits...)) {
		d++
	}
	return s.figure(iv, d)
}

// RatioText prints a ratio as "0.951 [0.940, 0.962]".
func RatioText(iv Interval) string {
	median, bounds := Ratio(iv)
	return strings.TrimSpace(median + " " + bounds)
}

// decimals returns the number of decimals that Figure prints.
func (s Scale) decimals(iv Interval) int {
	d, low, high := Significant(s.three(iv.Median)), s.three(iv.Low), s.three(iv.High)
	if s.Unit == "%" && s.By == 1 {
		return min(d, 1) // CPU has no more precision
	}
	if high > low && Grouped(low, d) == Grouped(high, d) {
		d++
	}
	return d
}

func (s Scale) figure(iv Interval, decimals int) (median, bounds string) {
	median = Grouped(s.three(iv.Median), decimals)
	if iv.N > 1 {
		bounds = "[" + Grouped(s.three(iv.Low), decimals) + ", " + Grouped(s.three(iv.High), decimals) + "]"
	}
	return median, bounds
}

// PrintInterval prints an interval in this scale as "940 Mbit/s [931, 948]".
func (s Scale) PrintInterval(iv Interval) string {
	median, bounds := s.Figure(iv)
	return strings.TrimSpace(WithUnit(median, s.Unit) + " " + bounds)
}

// Print prints one value in this scale with its unit.
func (s Scale) Print(v float64) string {
	v = s.three(v)
	return WithUnit(Grouped(v, Significant(v)), s.Unit)
}

// WithUnit prints a figure with its unit.
func WithUnit(figure, unit string) string {
	if unit == "" || unit == "/s" {
		return figure + unit
	}
	return figure + " " + unit
}

// Significant returns the number of decimals for three significant digits after
// rounding: 0.9996 is printed as 1.00.
func Significant(v float64) int {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	_, exponent, _ := strings.Cut(strconv.FormatFloat(v, 'e', 2, 64), "e")
	e, err := strconv.Atoi(exponent)
	if err != nil {
		return 0
	}
	return min(6, max(0, 2-e))
}

// three converts v to the scale. It rounds thousands to three significant digits,
// unless v is a count.
func (s Scale) three(v float64) float64 {
	if v /= s.By; s.Unit == "" {
		return v
	}
	return Three(v)
}

// Three rounds thousands to three significant digits.
func Three(v float64) float64 {
	if math.Abs(v) < 1000 || math.IsInf(v, 0) {
		return v
	}
	step := math.Pow10(int(math.Floor(math.Log10(math.Abs(v)))) - 2)
	return math.Round(v/step) * step
}

// Grouped prints v with this many decimals. Without decimals it separates the
// thousands of 10,000 and more.
func Grouped(v float64, decimals int) string {
	if math.Abs(v) >= 10_000 && decimals == 0 {
		return units.FormatCount(v)
	}
	return strconv.FormatFloat(v, 'f', decimals, 64)
}

// Rounded rounds v to this many decimals.
func Rounded(v float64, decimals int) float64 {
	step := math.Pow10(decimals)
	return math.Round(v*step) / step
}
