package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"windtunnel/lab/phrase"
	"windtunnel/lab/suite"
)

// name is what a sentence calls a system or a scenario.
type name struct {
	text  string
	prose bool // words, which begin a sentence with a capital; else an identifier, as in the tables
}

// opening is the name at the beginning of a sentence.
func (n name) opening() string {
	if n.prose {
		return phrase.Capital(n.text)
	}
	return n.text
}

// callers returns what sentences call each scenario's system: its name in prose
// and its place where these tell the groups of the run apart, else the group. A
// system without such a name is called as it is where the group is named after
// it.
func (r *Report) callers() func(*Scenario) name {
	groups := make(map[string]map[string]bool)
	rows := r.Scenarios
	for i := range rows {
		n := r.systemOf(&rows[i]).text
		if groups[n] == nil {
			groups[n] = make(map[string]bool)
		}
		groups[n][suite.Group(rows[i].ID)] = true
	}
	return func(s *Scenario) name {
		if n := r.systemOf(s); len(groups[n.text]) == 1 {
			return n
		}
		return name{text: suite.Group(s.ID)}
	}
}

// systemOf names a scenario's system and place.
func (r *Report) systemOf(s *Scenario) name {
	n := name{text: s.System}
	if title := r.systems[s.System]; title != "" {
		n = name{title, true}
	} else if group := suite.Group(s.ID); !strings.HasPrefix(group, s.System) {
		return name{text: group} // the suite's own name for it
	}
	if s.Placement == string(suite.Colocated) {
		n.text += " on one node"
	}
	return n
}

// percent prints a ratio as "97 % [95, 99]".
func percent(iv Interval) string {
	scaled := Interval{Median: 100 * iv.Median, Low: 100 * iv.Low, High: 100 * iv.High, N: iv.N}
	return bracketed(scaled, 0, " %", 100)
}

// factor prints a ratio as "1.08× [1.05, 1.11]".
func factor(iv Interval) string { return bracketed(iv, 2, "×", 1) }

// bracketed prints an interval with as many decimals, least at first, as its
// width deserves, and enough that a bound which is not one of the limits does
// not read so.
func bracketed(iv Interval, least int, unit string, limits ...float64) string {
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

// reads reports whether v rounds to limit at this step without being it.
func reads(v, limit, step float64) bool {
	return v != limit && math.Abs(v-limit) < step/2
}

// bitRate prints an interval as "9.51 Gbit/s [9.48, 9.55]".
func bitRate(iv Interval) string { return scaled(iv, "bit/s") }

// rate prints an interval of transactions as "27.4 k/s [27.1, 27.9]".
func rate(iv Interval) string { return scaled(iv, "/s") }

func scaled(iv Interval, unit string) string {
	prefix, by := "", 1.0
	for _, p := range []struct {
		prefix string
		by     float64
	}{{"k", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12}} {
		if math.Abs(iv.Median) >= p.by {
			prefix, by = p.prefix, p.by
		}
	}
	number := func(v float64) string { return fmt.Sprintf("%.*f", decimals(iv.Median/by), v/by) }
	text := fmt.Sprintf("%s %s%s", number(iv.Median), prefix, unit)
	if iv.N > 1 {
		text += fmt.Sprintf(" [%s, %s]", number(iv.Low), number(iv.High))
	}
	return text
}

// decimals leaves three significant digits of v.
func decimals(v float64) int {
	switch v = math.Abs(v); {
	case v >= 100:
		return 0
	case v >= 10:
		return 1
	}
	return 2
}

// percentage prints a share with two significant digits, as "3.1 %".
func percentage(v float64) string {
	if v *= 100; math.Abs(v) >= 99.5 {
		return fmt.Sprintf("%.0f %%", v)
	}
	return fmt.Sprintf("%.2g %%", v)
}

// oftenShown is how often a difference shows for which the power is 0.8.
const oftenShown = " in 4 of 5 such runs"

// wouldShow says how small a difference would have shown: "a difference of
// 3.1 % or more would have shown"; empty where that is not known. Of a ratio
// farther from 1 than that it says how often, for once in 5 it does not show.
func wouldShow(lead string, detectable *float64, ratio float64) string {
	switch {
	case detectable == nil || *detectable < 0:
		return ""
	case *detectable == 0: // the ratio did not vary at all
		return lead + "any difference would have shown"
	}
	text := fmt.Sprintf("%sa difference of %s or more would have shown", lead, percentage(*detectable))
	if outside(*detectable, ratio) {
		text += oftenShown
	}
	return text
}

// outside reports whether a ratio lies so far from 1 that it would have shown.
func outside(detectable, ratio float64) bool {
	return math.Abs(math.Log(ratio)) >= math.Log1p(detectable)
}

// The legends of the marks beside a ratio, the same in every part of a report.
const (
	suggestedLegend = "? suggested: the 95 % interval leaves out 1, but the correction for many comparisons does not confirm it."
	fewLegend       = "… too few trials to tell a difference from chance."
)

// pValue prints a p-value as "p = 0.031".
func pValue(p float64) string {
	if p < 0.001 {
		return "p < 0.001"
	}
	return fmt.Sprintf("p = %.2g", p)
}
