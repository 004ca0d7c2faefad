package report

import (
	"fmt"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"windtunnel/lab/suite"
)

// systemNames are what a sentence calls a system where its own name is not
// what people call it.
var systemNames = map[string]string{
	"bridge": "the bridge", "vxlan": "kernel VXLAN", "geneve": "kernel Geneve", "gre": "kernel GRE", "vrouter": "the vrouter",
}

// groupOf is the part of a scenario's id before "/".
func groupOf(id string) string {
	group, _, _ := strings.Cut(id, "/")
	return group
}

// callers returns what sentences call each scenario's system: its name and
// place where these tell the groups of the run apart, else the group.
func callers(rows []Scenario) func(*Scenario) string {
	name := func(s *Scenario) string {
		n := s.System
		if known, ok := systemNames[n]; ok {
			n = known
		}
		if s.Placement == string(suite.Colocated) {
			n += " on one node"
		}
		return n
	}
	groups := make(map[string]map[string]bool)
	for i := range rows {
		n := name(&rows[i])
		if groups[n] == nil {
			groups[n] = make(map[string]bool)
		}
		groups[n][groupOf(rows[i].ID)] = true
	}
	return func(s *Scenario) string {
		if n := name(s); len(groups[n]) == 1 {
			return n
		}
		return groupOf(s.ID)
	}
}

// percent prints a ratio as "97 % [95, 99]".
func percent(iv Interval) string {
	scaled := Interval{Median: 100 * iv.Median, Low: 100 * iv.Low, High: 100 * iv.High, N: iv.N}
	return bracketed(scaled, 0, 100, " %")
}

// factor prints a ratio as "1.08× [1.05, 1.11]".
func factor(iv Interval) string { return bracketed(iv, 2, 1, "×") }

// bracketed prints an interval with as many decimals, least at first, as its
// width deserves, and enough that a bound which is not unity does not read so.
func bracketed(iv Interval, least int, unity float64, unit string) string {
	decimals := least
	for ; decimals < least+3; decimals++ {
		step := math.Pow10(-decimals)
		if iv.High-iv.Low >= 2*step && !reads(iv.Low, unity, step) && !reads(iv.High, unity, step) {
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

// reads reports whether v rounds to unity at this step without being it.
func reads(v, unity, step float64) bool {
	return v != unity && math.Abs(v-unity) < step/2
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

// list joins parts as a sentence does.
func list(parts []string) string {
	if len(parts) < 2 {
		return strings.Join(parts, "")
	}
	return strings.Join(parts[:len(parts)-1], ", ") + " and " + parts[len(parts)-1]
}

func capital(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	if size == 0 {
		return text
	}
	return string(unicode.ToUpper(first)) + text[size:]
}

// count writes a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
