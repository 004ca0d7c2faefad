package compare

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"windtunnel/internal/lists"
	"windtunnel/internal/phrase"
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/sample"
	"windtunnel/lab/stats"
	"windtunnel/lab/units"
)

// Assumed spread between runs, as standard deviation of the logarithm, where
// too few runs exist to measure it. It is that of runs hours apart on a virtual
// machine whose host moved its CPUs: throughput differed by up to 33 %, ratios
// to the baseline by up to 17 %.
const (
	assumedOfValue = 0.20
	assumedOfRatio = 0.06
)

// leastFreedom is the fewest degrees of freedom of a measured spread: two runs
// beyond the first one of each state of the software.
const leastFreedom = 2

// RunSpread is how much runs of the same software differ.
type RunSpread struct {
	Relative float64 `json:"relative"` // relative standard deviation, or that of the figure itself if it can be zero
	Freedom  float64 `json:"degrees_of_freedom,omitempty"`
	Assumed  bool    `json:"assumed,omitempty"`
}

// runFigure is the figure of one run in a row. A run's trials share the
// machine's state, so a run counts once, whatever its number of trials.
type runFigure struct {
	value  float64
	trials []float64
	run    *columns
}

// group has the runs of one side, which are of the same software.
type group []*columns

func (g group) first() *columns { return g[0] }

const oneTrial = "one trial has no spread to judge by; run two at least"

// figures returns a row's figure for each run with two trials of it. If no run
// has two, why is the reason.
func (g group) figures(r *Row, trials func(*columns) []float64, figure func([]float64) float64) (list []runFigure, why string) {
	for _, c := range g {
		switch xs := trials(c); {
		case len(xs) > 1:
			list = append(list, runFigure{figure(xs), xs, c})
		case len(xs) == 1:
			why = oneTrial
		}
	}
	switch {
	case len(list) > 0:
		return list, ""
	case why != "":
	case r.Baseline != "":
		why = "no block has this metric of both"
	case len(g) > 0:
		why = g.first().missing(r.Scenario)
	}
	return nil, why
}

func medianOf(xs []float64) float64 {
	median, _, _ := stats.Median(xs)
	return median
}

// centreOf is the Hodges–Lehmann estimate of ratios, as in a run's report.
func centreOf(ratios []float64) float64 {
	ones := slices.Repeat([]float64{1}, len(ratios))
	if e, ok, err := stats.Ratio(ratios, ones, stats.Level); ok && err == nil {
		return e.Median
	}
	return medianOf(ratios)
}

// sideInterval returns a side's figure with its interval, for the table.
func sideInterval(figures []runFigure) *quantity.Interval {
	switch len(figures) {
	case 0:
		return nil
	case 1:
		iv := quantity.MedianInterval(figures[0].trials)
		iv.Median = figures[0].value
		return iv
	}
	xs, sum := make([]float64, len(figures)), 0.0
	for i, f := range figures {
		xs[i] = f.value
		sum += math.Log(f.value)
	}
	iv := quantity.MedianInterval(xs)
	if slices.Min(xs) > 0 {
		iv.Median = math.Exp(sum / float64(len(xs)))
	}
	iv.Low, iv.High = slices.Min(xs), slices.Max(xs)
	return iv
}

// spreads sets the row's spread between runs: the spread within both sides and within the
// stored runs of each revision and kernel. If there are too few runs, the spread is
// assumed, plus the uncertainty of each run's figure. All trials of an adjusted run share the error
// of its regression, so the uncertainty is at least the jackknife's standard error. A measured spread already
// contains this error, because each run is adjusted by another regression. spreads returns false if no spread
// can be assumed: a figure of zero has no relative spread.
func (p *pairing) spreads(r *Row, trials func(*columns) []float64, figure func([]float64) float64) bool {
	groups := [][]runFigure{r.before, r.after}
	for _, g := range p.history {
		if figures, _ := g.sameDefinition(p.b.first(), r).figures(r, trials, figure); len(figures) > 1 {
			groups = append(groups, figures)
		}
	}
	var scaled [][]float64
	for _, g := range groups {
		r.linear = r.linear || slices.ContainsFunc(g, func(f runFigure) bool { return f.value <= 0 })
	}
	for _, g := range groups {
		scaled = append(scaled, r.scaled(g))
	}
	s, ok := stats.PooledSpread(scaled...)
	if ok && s.Freedom >= leastFreedom {
		r.spread, r.Spread = s, &RunSpread{Relative: s.Deviation, Freedom: s.Freedom}
		return true
	}
	if r.linear {
		return false
	}
	assumed, open := assumedOfValue, 0.0
	if r.Baseline != "" {
		assumed = assumedOfRatio
	}
	runs := append(slices.Clone(r.before), r.after...)
	for _, f := range runs {
		e, _ := stats.MedianError(logarithms(f.trials))
		if left := f.run.leaveOneOut(f.trials, trials, figure); len(left) > 1 {
			e = max(e, stats.NewJackknife(logarithms(left)).StandardError)
		}
		open += e * e / float64(len(runs))
	}
	r.spread = stats.Spread{Deviation: math.Sqrt(assumed*assumed + open), Freedom: math.Inf(1)}
	r.Spread = &RunSpread{Relative: r.spread.Deviation, Assumed: true}
	return true
}

func logarithms(xs []float64) []float64 {
	return lists.Map(xs, func(x float64) float64 { return math.Log(max(x, math.SmallestNonzeroFloat64)) })
}

// sameDefinition returns the runs of g that define the row's scenarios as now does.
func (g group) sameDefinition(now *columns, r *Row) group {
	same := func(c *columns, id string) bool {
		before, after := c.side.scenario(id), now.side.scenario(id)
		return before != nil && after != nil && len(definition(*before, *after)) == 0
	}
	return slices.DeleteFunc(slices.Clone(g), func(c *columns) bool {
		return !same(c, r.Scenario) || r.Baseline != "" && !same(c, r.Baseline)
	})
}

// past groups stored runs by software. A stored run is kept if it is complete, is from
// this machine, has the form of a compared run, counts the same trials, and is not among
// the compared runs.
func past(stored []Side, now *Side, compared ...[]Side) []group {
	type software struct{ revision, kernel string }
	groups := make(map[software]group)
	var order []software
	for i := range stored {
		s := &stored[i]
		in := func(side []Side) bool {
			return slices.ContainsFunc(side, func(c Side) bool { return c.same(s) })
		}
		alike := func(side []Side) bool {
			return slices.ContainsFunc(side, func(c Side) bool { return c.Run.Options.Form() == s.Run.Options.Form() })
		}
		if s.Run.Status != sample.Complete || !slices.ContainsFunc(compared, alike) || slices.ContainsFunc(compared, in) || len(otherMachine(environments(now.Run.Environment, s.Run.Environment))) > 0 ||
			len(otherTrials(options(now.Run.Options, s.Run.Options))) > 0 {
			continue
		}
		key := software{s.Run.Environment.Revision, s.Run.Environment.Kernel}
		if groups[key] == nil {
			order = append(order, key)
		}
		groups[key] = append(groups[key], newColumns(s))
	}
	slices.SortFunc(order, func(a, b software) int {
		return cmp.Or(cmp.Compare(a.revision, b.revision), cmp.Compare(a.kernel, b.kernel))
	})
	return lists.Map(order, func(key software) group { return groups[key] })
}

// spreadNotes returns notes on the spread between runs: measured or assumed.
func spreadNotes(c *Comparison) []string {
	assumed, measured, low, high := 0, 0, math.Inf(1), 0.0
	for _, rows := range [][]Row{c.Values, c.Ratios} {
		for i := range rows {
			switch s := rows[i].Spread; {
			case s == nil:
			case s.Assumed:
				assumed++
			case !rows[i].linear:
				measured++
				low, high = min(low, s.Relative), max(high, s.Relative)
			}
		}
	}
	var notes []string
	if measured > 0 {
		notes = append(notes, fmt.Sprintf("The run is the unit: a difference must stand out from the spread between runs of the same software, %s to %s here.", tenths(low), tenths(high)))
	}
	if assumed > 0 {
		notes = append(notes, fmt.Sprintf("In %s the spread between runs is assumed, %s of a figure and %s of a ratio to the baseline, because too few runs of this suite on this machine are stored. To measure it, repeat the suite, or name several runs for each side (A1,A2 B1,B2).",
			phrase.Count(assumed, "row"), units.FormatPercent(assumedOfValue), units.FormatPercent(assumedOfRatio)))
	}
	return notes
}
