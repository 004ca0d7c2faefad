package quantity

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"windtunnel/lab/stats"
)

// Interval is a median with its 95 % interval. A figure's interval comes from order
// statistics. A ratio has Hodges and Lehmann's median of the ratios within blocks;
// its interval holds the values that the signed-rank test does not reject. With too
// few samples for an interval, Low and High are the extremes. Level is then their
// confidence.
type Interval struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	N      int     `json:"n"`
	Level  float64 `json:"level"` // actual confidence of [Low, High], 0..1
}

// MedianInterval returns the median of finite values with its interval; nil without
// values.
func MedianInterval(xs []float64) *Interval {
	iv, ok, err := stats.MedianInterval(xs, stats.Level)
	if !ok || err != nil {
		return nil
	}
	return (*Interval)(&iv)
}

// Percent prints a ratio as "97 % [95, 99]".
func (iv Interval) Percent() string {
	scaled := Interval{Median: 100 * iv.Median, Low: 100 * iv.Low, High: 100 * iv.High, N: iv.N}
	return Bracketed(scaled, 0, " %", 100)
}

// Bracketed prints an interval. It starts with least decimals and adds decimals until
// its width shows. A bound that differs from a limit must not be printed like it.
func Bracketed(iv Interval, least int, unit string, limits ...float64) string {
	decimals := least
	for ; decimals < least+3; decimals++ {
		step := math.Pow10(-decimals)
		misread := slices.ContainsFunc(limits, func(limit float64) bool { return reads(iv.Low, limit, step) || reads(iv.High, limit, step) })
		if iv.High-iv.Low >= 2*step && !misread {
			break
		}
		if iv.Low == iv.High && decimals > least {
			break // no width to show
		}
	}
	number := func(v float64) string { return fmt.Sprintf("%.*f", decimals, v) }
	if iv.N == 1 {
		return number(iv.Median) + unit
	}
	return fmt.Sprintf("%s%s [%s, %s]", number(iv.Median), unit, number(iv.Low), number(iv.High))
}

// reads reports whether v differs from limit, but rounds to it at this step.
func reads(v, limit, step float64) bool {
	return v != limit && math.Abs(v-limit) < step/2
}

// Percentage prints a share with two significant digits: 0.031 is "3.1 %".
func Percentage(v float64) string {
	if v *= 100; math.Abs(v) >= 99.5 {
		return fmt.Sprintf("%.0f %%", v)
	}
	return fmt.Sprintf("%.2g %%", v)
}

// Change prints a ratio as a change in percent: 0.784 is "−21.6 %". A change of at least
// whole percent has no decimals, a smaller one has one.
func Change(ratio, whole float64) string {
	change, decimals := 100*(ratio-1), 1
	if math.Abs(change) >= whole {
		decimals = 0
	}
	return Signed(change, decimals) + " %"
}

// Signed prints v with a sign. The minus is U+2212. Zero has no sign.
func Signed(v float64, decimals int) string {
	text := strings.Replace(fmt.Sprintf("%+.*f", decimals, v), "-", "−", 1)
	if strings.Trim(text, "+−0.") == "" {
		return strings.TrimLeft(text, "+−")
	}
	return text
}
