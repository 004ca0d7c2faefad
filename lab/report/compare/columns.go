package compare

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"windtunnel/internal/lists"
	"windtunnel/lab/condition"
	"windtunnel/lab/sample"
	"windtunnel/lab/units"
)

// columns are the figures of a run that count: of every block the last attempt
// that has any, at the CPU distance of most trials.
type columns struct {
	side    *Side
	cells   map[string][]*sample.Sample // by scenario, in order of block
	invalid map[string]map[string]int   // by scenario and reason: how many trials do not count
	left    []*columns                  // for leaveOneOut: copies of the run, each without one block
}

func newColumns(s *Side) *columns {
	samples, choice := s.Samples, condition.Choice(s.Run.Options.CPUDistance)
	if s.Run.Options.Adjusted {
		samples = condition.Adjust(samples, choice)
	}
	_, parts, shown := condition.Split(samples, choice)
	trials := make(map[string][]*sample.Sample)
	for i := range parts[shown] {
		if x := &parts[shown][i]; !x.Profiled { // those were never meant to count
			trials[x.Scenario] = append(trials[x.Scenario], x)
		}
	}
	c := &columns{side: s, cells: make(map[string][]*sample.Sample), invalid: make(map[string]map[string]int)}
	for id, all := range trials {
		if cell := sample.Counting(all); len(cell) > 0 {
			c.cells[id] = cell
		}
		c.note(id, all)
	}
	return c
}

// leaveOneOut returns the estimates for the jackknife: for each block, the figure of the run without this block. It
// repeats the adjustment for each of these runs. xs has the trials' values in the whole run. If the adjustment changes
// no value, leaveOneOut returns nil.
func (c *columns) leaveOneOut(xs []float64, trials func(*columns) []float64, figure func([]float64) float64) (list []float64) {
	if !c.side.Run.Options.Adjusted {
		return nil
	}
	if c.left == nil {
		blocks := make(map[int]bool)
		for _, s := range c.side.Samples {
			blocks[s.Block] = true
		}
		for _, block := range slices.Sorted(maps.Keys(blocks)) {
			rest := *c.side
			rest.Samples = slices.DeleteFunc(slices.Clone(rest.Samples), func(s sample.Sample) bool { return s.Block == block })
			c.left = append(c.left, newColumns(&rest))
		}
	}
	adjusted := false
	for _, rest := range c.left {
		if ys := trials(rest); len(ys) > 0 {
			list = append(list, figure(ys))
			adjusted = adjusted || slices.ContainsFunc(ys, func(y float64) bool { return !slices.Contains(xs, y) })
		}
	}
	if !adjusted {
		return nil
	}
	return list
}

// note counts a scenario's blocks without figures, by the reason why the last
// attempt does not count.
func (c *columns) note(id string, all []*sample.Sample) {
	last := make(map[int]*sample.Sample)
	for _, x := range all {
		if l := last[x.Block]; l == nil || x.Attempt >= l.Attempt {
			last[x.Block] = x
		}
	}
	for _, x := range c.cells[id] {
		delete(last, x.Block)
	}
	for _, x := range last {
		if c.invalid[id] == nil {
			c.invalid[id] = make(map[string]int)
		}
		c.invalid[id][x.Cause()]++
	}
}

// warned counts the trials that count although a condition of the machine was
// not valid (--gates warn), and lists the conditions.
func (c *columns) warned() (n int, what string) {
	var names []string
	for _, cell := range c.cells {
		for _, x := range cell {
			before := len(names)
			for _, g := range x.Flags {
				if !g.Name.Outcome() && !(c.side.Run.Options.Adjusted && condition.Adjustable(g)) {
					names = append(names, string(g.Name))
				}
			}
			if len(names) > before {
				n++
			}
		}
	}
	slices.Sort(names)
	return n, strings.Join(slices.Compact(names), ", ")
}

// values returns a metric's finite values, in order of block.
func (c *columns) values(id string, m sample.Metric) []float64 {
	var xs []float64
	for _, s := range c.cells[id] {
		if v, ok := s.Metrics[m]; ok && units.Finite(v) {
			xs = append(xs, v)
		}
	}
	return xs
}

// dirty counts the values of a metric that are not finite numbers.
func (c *columns) dirty(id string, m sample.Metric) int {
	n := 0
	for _, s := range c.cells[id] {
		if v, ok := s.Metrics[m]; ok && !units.Finite(v) {
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
		if v, ok := s.Metrics[m]; ok && units.Finite(v) && v > 0 {
			under[s.Block] = v
		}
	}
	var ratios []float64
	for _, s := range c.cells[subject] {
		v, ok := s.Metrics[m]
		below, paired := under[s.Block]
		if ok && paired && units.Finite(v) && units.Finite(v/below) {
			ratios = append(ratios, v/below)
		}
	}
	return ratios
}

func (c *columns) info() RunInfo {
	r := c.side.Run
	info := RunInfo{ID: r.ID, Name: r.Name, Note: r.Note, Suite: r.Suite, Started: r.Started, Status: r.Status, Revision: r.Environment.Revision}
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
	return strings.Join(lists.Map(slices.Sorted(maps.Keys(causes)), func(why string) string { return fmt.Sprintf("%s %d", why, causes[why]) }), ", ")
}
