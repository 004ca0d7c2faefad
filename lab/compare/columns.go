package compare

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"windtunnel/lab/condition"
	"windtunnel/lab/sample"
)

// columns are the figures of a run that count: of every block the last attempt
// that has any, at the CPU distance of most trials.
type columns struct {
	side    *Side
	cells   map[string][]*sample.Sample // by scenario, in order of block
	invalid map[string]map[string]int   // by scenario and reason: how many trials do not count
}

func newColumns(s *Side) *columns {
	type trial struct {
		scenario string
		block    int
	}
	best, last := make(map[trial]*sample.Sample), make(map[trial]*sample.Sample)
	samples := s.Samples
	if s.Run.Options.Adjusted {
		samples = condition.Adjust(samples)
	}
	_, parts, shown := condition.Split(samples)
	samples = parts[shown]
	for i := range samples {
		x := &samples[i]
		if x.Profiled {
			continue // profiled trials never count
		}
		t := trial{x.Scenario, x.Block}
		if l := last[t]; l == nil || x.Attempt >= l.Attempt {
			last[t] = x
		}
		if b := best[t]; x.Counts() && (b == nil || x.Attempt >= b.Attempt) {
			best[t] = x
		}
	}
	c := &columns{side: s, cells: make(map[string][]*sample.Sample), invalid: make(map[string]map[string]int)}
	for t, x := range last {
		if b := best[t]; b != nil {
			c.cells[t.scenario] = append(c.cells[t.scenario], b)
			continue
		}
		if c.invalid[t.scenario] == nil {
			c.invalid[t.scenario] = make(map[string]int)
		}
		c.invalid[t.scenario][cause(x)]++
	}
	for _, cell := range c.cells {
		slices.SortFunc(cell, func(x, y *sample.Sample) int { return cmp.Compare(x.Block, y.Block) })
	}
	return c
}

// cause names in a word why a sample does not count.
func cause(s *sample.Sample) string {
	if !s.OK() {
		return string(s.Failure.Kind)
	}
	return string(s.Gates[0].Name)
}

// values returns a metric's finite values, in order of block.
func (c *columns) values(id string, m sample.Metric) []float64 {
	var xs []float64
	for _, s := range c.cells[id] {
		if v, ok := s.Metrics[m]; ok && finite(v) {
			xs = append(xs, v)
		}
	}
	return xs
}

// dirty counts the values of a metric that are not finite numbers.
func (c *columns) dirty(id string, m sample.Metric) int {
	n := 0
	for _, s := range c.cells[id] {
		if v, ok := s.Metrics[m]; ok && !finite(v) {
			n++
		}
	}
	return n
}

// within returns subject / baseline for every block that has both, with a
// baseline above zero.
func (c *columns) within(subject, baseline string, m sample.Metric) []float64 {
	under := make(map[int]float64)
	for _, s := range c.cells[baseline] {
		if v, ok := s.Metrics[m]; ok && finite(v) && v > 0 {
			under[s.Block] = v
		}
	}
	var ratios []float64
	for _, s := range c.cells[subject] {
		v, ok := s.Metrics[m]
		below, paired := under[s.Block]
		if ok && paired && finite(v) && finite(v/below) {
			ratios = append(ratios, v/below)
		}
	}
	return ratios
}

// ids are the scenarios that the run planned.
func (c *columns) ids() []string {
	var ids []string
	for i := range c.side.Plan.Scenarios {
		ids = append(ids, c.side.Plan.Scenarios[i].ID)
	}
	return ids
}

func (c *columns) info() RunInfo {
	r := c.side.Run
	info := RunInfo{ID: r.ID, Suite: r.Suite, Started: r.Started, Status: r.Status, Revision: r.Environment.Revision}
	for _, cell := range c.cells {
		info.Trials += len(cell)
	}
	for _, causes := range c.invalid {
		for _, n := range causes {
			info.Invalid += n
		}
	}
	return info
}

// troubles lists the reasons why trials of the run do not count: "foreign-cpu
// 4".
func (c *columns) troubles() string {
	total := make(map[string]int)
	for _, causes := range c.invalid {
		for why, n := range causes {
			total[why] += n
		}
	}
	return counted(total)
}

// missing says why a scenario has no figure.
func (c *columns) missing(id string) string {
	switch {
	case c.side.Run.Skipped[id] != "":
		return "skipped: " + c.side.Run.Skipped[id]
	case len(c.invalid[id]) > 0 && len(c.cells[id]) == 0:
		return "no trial counts: " + counted(c.invalid[id])
	case len(c.cells[id]) == 0:
		return "no trial"
	}
	return "its trials do not have this metric"
}

func counted(causes map[string]int) string {
	if len(causes) == 0 {
		return "it has none"
	}
	var parts []string
	for _, why := range slices.Sorted(maps.Keys(causes)) {
		parts = append(parts, fmt.Sprintf("%s %d", why, causes[why]))
	}
	return strings.Join(parts, ", ")
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
