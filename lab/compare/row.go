package compare

import (
	"fmt"
	"math"

	"windtunnel/lab/report"
	"windtunnel/lab/sample"
	"windtunnel/lab/stats"
)

// Row is one metric of one scenario in both runs.
type Row struct {
	Scenario string        `json:"scenario"`
	Baseline string        `json:"baseline,omitempty"` // of rows that compare ratios: A and B are scenario / baseline
	Metric   sample.Metric `json:"metric"`
	// A and B are the medians with their intervals, in the metric's SI unit or
	// as ratios to the baseline; nil where a run has no figure.
	A *report.Interval `json:"a,omitempty"`
	B *report.Interval `json:"b,omitempty"`
	// Ratio is B over A; nil where there is none.
	Ratio    *report.Interval `json:"ratio,omitempty"`
	P        *float64         `json:"p,omitempty"`          // of a Mann-Whitney test
	Adjusted *float64         `json:"p_holm,omitempty"`     // corrected over the rows of the table
	Effect   *float64         `json:"effect,omitempty"`     // Cliff's delta, −1…+1, positive where B is larger
	MinimumP *float64         `json:"p_floor,omitempty"`    // the smallest Adjusted that so few trials can reach
	Smallest *float64         `json:"detectable,omitempty"` // relative difference that would have been found
	Verdict  Verdict          `json:"verdict"`
	Note     string           `json:"note,omitempty"`

	before, after []float64
	floor         float64
}

// Verdict is what a row comes to.
type Verdict string

// The verdicts.
const (
	Better      Verdict = "better"
	Worse       Verdict = "worse"
	Differs     Verdict = "differs" // the metric has no better direction, or the machines differ
	Alike       Verdict = "no difference shows"
	TooFew      Verdict = "too few trials"
	NotMeasured Verdict = "not measured" // in one of the runs
)

// values makes the rows of the figures themselves.
func (p *pairing) values() []Row {
	var rows []Row
	for _, id := range p.ids {
		for _, info := range sample.Known() {
			if !p.wanted(id, info.Metric) {
				continue
			}
			row := Row{Scenario: id, Metric: info.Metric, before: p.a.values(id, info.Metric), after: p.b.values(id, info.Metric)}
			switch a, b := len(row.before), len(row.after); {
			case a == 0 && b == 0:
				continue
			case a == 0:
				row.Note = "run A: " + p.a.missing(id)
			case b == 0:
				row.Note = "run B: " + p.b.missing(id)
			}
			row.measure()
			rows = append(rows, row)
		}
	}
	return rows
}

// ratios makes the rows of the ratios to the baseline, each taken within
// blocks, so that what drifts between the runs meets both of its sides.
func (p *pairing) ratios() []Row {
	var rows []Row
	for _, c := range p.b.side.Plan.Comparisons {
		if !p.planned(c.Subject, c.Baseline) {
			continue
		}
		for _, info := range sample.Known() {
			if !p.wanted(c.Subject, info.Metric) {
				continue
			}
			row := Row{Scenario: c.Subject, Baseline: c.Baseline, Metric: info.Metric,
				before: p.a.within(c.Subject, c.Baseline, info.Metric), after: p.b.within(c.Subject, c.Baseline, info.Metric)}
			switch a, b := len(row.before), len(row.after); {
			case a == 0 && b == 0:
				continue
			case a == 0:
				row.Note = "run A: no block has this metric of both"
			case b == 0:
				row.Note = "run B: no block has this metric of both"
			}
			row.measure()
			rows = append(rows, row)
		}
	}
	return rows
}

// planned reports whether both plans compare subject with baseline, and define
// both alike.
func (p *pairing) planned(subject, baseline string) bool {
	found := false
	for _, c := range p.a.side.Plan.Comparisons {
		found = found || c.Subject == subject && c.Baseline == baseline
	}
	return found && contains(p.common, subject) && contains(p.common, baseline)
}

// measure takes what can be known of the row alone.
func (r *Row) measure() {
	r.A, r.B = interval(r.before), interval(r.after)
	if r.A == nil || r.B == nil {
		r.Verdict = NotMeasured
		return
	}
	r.Verdict = TooFew
	if a, b := len(r.before), len(r.after); a < 2 || b < 2 {
		r.Note = fmt.Sprintf("run A has %s and run B %s: one trial has no spread to judge by; run two at least, six to have a 95 %% interval", plural(a, "trial"), plural(b, "trial"))
		return
	}
	if iv, ok, err := stats.UnpairedRatio(r.after, r.before, stats.Level); err != nil {
		r.Note = "no ratio: " + err.Error()
	} else if ok && finite(iv.Low) && finite(iv.High) {
		r.Ratio = (*report.Interval)(&iv)
	}
	test, ok, err := stats.MannWhitney(r.after, r.before)
	switch {
	case err != nil:
		r.Note = "no test: " + err.Error()
	case ok:
		r.P, r.Effect, r.floor = &test.P, &test.Effect, test.Floor
	}
}

func interval(xs []float64) *report.Interval {
	iv, ok, err := stats.MedianInterval(xs, stats.Level)
	if !ok || err != nil {
		return nil
	}
	return (*report.Interval)(&iv)
}

// judge corrects the p-values of a table's rows for their number, and gives
// each its verdict; neutral where better and worse may not be said.
func judge(rows []Row, neutral bool) {
	var at []int
	var ps, floors []float64
	for i := range rows {
		if rows[i].P != nil {
			at, ps, floors = append(at, i), append(ps, *rows[i].P), append(floors, rows[i].floor)
		}
	}
	adjusted := stats.Holm(ps)
	// Holm's p-values grow with each of the p-values: with every row at its
	// floor, they are the smallest that any outcome could have had.
	least := stats.Holm(floors)
	for k, i := range at {
		rows[i].Adjusted, rows[i].MinimumP = &adjusted[k], &least[k]
		rows[i].decide(len(at), neutral)
	}
}

// decide gives a tested row its verdict, as one of so many.
func (r *Row) decide(rows int, neutral bool) {
	info, _ := sample.Describe(r.Metric)
	direction := r.direction()
	switch {
	case *r.MinimumP > Alpha:
		r.Verdict = TooFew
	case *r.Adjusted > Alpha || direction == 0:
		r.Verdict = Alike
		// A single test at alpha/m is what the first of Holm's m steps asks.
		smallest, ok, err := stats.DetectableUnpaired(r.after, r.before, Alpha/float64(rows), Power)
		if ok && err == nil && finite(smallest) {
			r.Smallest = &smallest
		}
	case info.Better == 0 || neutral:
		r.Verdict = Differs
	case direction == info.Better:
		r.Verdict = Better
	default:
		r.Verdict = Worse
	}
}

// direction is +1 where B is larger, −1 where it is smaller, and 0 where the
// medians are equal or contradict the ranks.
func (r *Row) direction() int {
	medians := sign(r.B.Median - r.A.Median)
	if medians != sign(*r.Effect) {
		return 0
	}
	return medians
}

// change is the relative change from A to B; infinite where A is zero and B is
// not.
func (r *Row) change() float64 {
	switch {
	case r.Ratio != nil:
		return r.Ratio.Median - 1
	case r.A.Median == r.B.Median:
		return 0
	case r.A.Median == 0:
		return math.Copysign(math.Inf(1), r.B.Median)
	}
	return (r.B.Median - r.A.Median) / math.Abs(r.A.Median)
}

func sign(v float64) int {
	switch {
	case v > 0:
		return 1
	case v < 0:
		return -1
	}
	return 0
}

func contains(ids []string, id string) bool {
	for _, x := range ids {
		if x == id {
			return true
		}
	}
	return false
}
