package condition

import (
	"fmt"
	"slices"
	"strings"
)

// Level is one state of the machine's CPUs: a range of distances without a gap.
type Level struct {
	Low, High float64 // ns
	Median    float64 // ns
	Share     float64 // part of all readings, 0..1
}

const (
	// gap is the ratio between neighbouring readings that separates two levels.
	// CPUs of one cache and CPUs of two caches differ by a factor of 5 when
	// idle and of 3 under load. Readings of one level spread by less than a
	// fifth.
	gap = 1.6
	// company is the part of all readings that must lie within a factor of
	// nearby around a reading. A reading with fewer is an outlier: a CPU moved
	// during the reading, or its thread came late.
	company = 0.02
	nearby  = 1.25
)

// Levels divides readings, in ns, at the gaps. The nearest level is first.
// Outliers are left out.
func Levels(readings []float64) []Level {
	sorted := slices.Clone(readings)
	slices.Sort(sorted)
	sorted = withCompany(slices.DeleteFunc(sorted, func(r float64) bool { return !(r > 0) }))
	var levels []Level
	for from := 0; from < len(sorted); {
		to := from + 1
		for to < len(sorted) && sorted[to] <= gap*sorted[to-1] {
			to++
		}
		levels = append(levels, Level{
			Low: sorted[from], High: sorted[to-1], Median: sorted[(from+to)/2], Share: float64(to-from) / float64(len(sorted)),
		})
		from = to
	}
	return levels
}

// withCompany leaves out outliers.
func withCompany(sorted []float64) []float64 {
	others := max(1, int(company*float64(len(sorted))))
	var list []float64
	from, to := 0, 0
	for _, r := range sorted {
		for sorted[from] < r/nearby {
			from++
		}
		for to < len(sorted) && sorted[to] <= r*nearby {
			to++
		}
		if to-from-1 >= others || len(sorted) <= others {
			list = append(list, r)
		}
	}
	return list
}

// Of returns the index of a reading's level; −1 if it has none.
func Of(levels []Level, reading float64) int {
	for i, l := range levels {
		if reading >= l.Low/nearby && reading <= l.High*nearby {
			return i
		}
	}
	return -1
}

// Choice is the level at which a run measures.
type Choice string

const (
	Auto Choice = "auto" // the nearest level with at least a quarter of the readings
	Near Choice = "near"
	Far  Choice = "far"
	Any  Choice = "any"
	Off  Choice = "off" // the distance is not read
)

// Choose returns the index of the level to measure at; −1 for any level, or
// without readings.
func (c Choice) Choose(levels []Level) int {
	if len(levels) == 0 || c == Any {
		return -1
	}
	switch c {
	case Near:
		return 0
	case Far:
		return len(levels) - 1
	}
	most := 0
	for i, l := range levels {
		if l.Share >= 0.25 {
			return i
		}
		if l.Share > levels[most].Share {
			most = i
		}
	}
	return most
}

// Describe lists levels: "52 ns or 335 ns".
func Describe(levels []Level) string {
	var parts []string
	for _, l := range levels {
		parts = append(parts, fmt.Sprintf("%.0f ns", l.Median))
	}
	return strings.Join(parts, " or ")
}
