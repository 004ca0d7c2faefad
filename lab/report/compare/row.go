package compare

import (
	"math"
	"slices"

	"windtunnel/lab/report/model"
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/report/verdicts"
	"windtunnel/lab/sample"
	"windtunnel/lab/stats"
	"windtunnel/lab/units"
)

// Row is one metric of one scenario on both sides.
type Row struct {
	Scenario string        `json:"scenario"`
	Baseline string        `json:"baseline,omitempty"` // in rows that compare ratios, where A and B are scenario / baseline
	Metric   sample.Metric `json:"metric"`
	// A and B are the figures in the metric's SI unit, or as ratios to the
	// baseline. One run has its interval over trials. Several runs have their
	// geometric mean, with the lowest and the highest run as bounds. nil if a
	// side has no figure.
	A *quantity.Interval `json:"a,omitempty"`
	B *quantity.Interval `json:"b,omitempty"`
	// Ratio is B over A, with the interval from the spread between runs; nil if
	// there is none.
	Ratio    *quantity.Interval `json:"ratio,omitempty"`
	Spread   *RunSpread         `json:"run_spread,omitempty"`
	P        *float64           `json:"p,omitempty"`          // p-value of the test that Ratio's interval inverts
	Adjusted *float64           `json:"p_holm,omitempty"`     // P after the correction for all rows of the table
	Smallest *float64           `json:"detectable,omitempty"` // smallest relative difference that would have been found
	Verdict  Verdict            `json:"verdict"`
	Note     string             `json:"note,omitempty"`

	before, after []runFigure
	spread        stats.Spread // of logarithms, or of the figures where one is not positive
	linear        bool
}

// Verdict is the result of a row.
type Verdict string

// The verdicts.
const (
	Better      Verdict = "better"
	Worse       Verdict = "worse"
	Differs     Verdict = "differs"                   // the metric has no better direction, or the machines differ
	Undecided   Verdict = "undecided"                 // the runs count different trials, or had the CPUs at different distances
	Suggested   Verdict = "suggested"                 // the interval excludes 1, but not after the correction
	Alike               = Verdict(model.NoDifference) // the interval holds 1
	TooNoisy            = Verdict(model.TooNoisy)     // the interval holds 1, and only differences above model.NoisyAbove would have been found
	TooFew      Verdict = "too few trials"
	NotMeasured Verdict = "not measured" // a side has no figure
)

// noisyLast moves the rows that are too noisy to the end, and keeps the order otherwise.
func noisyLast(rows []Row) {
	slices.SortStableFunc(rows, func(a, b Row) int { return rank(a.Verdict != TooNoisy) - rank(b.Verdict != TooNoisy) })
}

// values returns the rows of the figures themselves.
func (p *pairing) values() []Row {
	var rows []Row
	for _, id := range p.ids {
		for _, m := range p.metrics(id) {
			row := Row{Scenario: id, Metric: m}
			if p.measure(&row, func(c *columns) []float64 { return c.values(id, m) }, medianOf) {
				rows = append(rows, row)
			}
		}
	}
	return rows
}

// ratios returns the rows of the ratios to the baseline. Each ratio is taken
// within the blocks of its run, so that drift between the runs affects subject
// and baseline alike.
func (p *pairing) ratios() []Row {
	var rows []Row
	for _, c := range p.b.first().side.Plan.Comparisons {
		if !p.planned(c.Subject, c.Baseline) {
			continue
		}
		for _, m := range p.metrics(c.Subject) {
			row := Row{Scenario: c.Subject, Baseline: c.Baseline, Metric: m}
			if p.measure(&row, func(run *columns) []float64 { return run.within(c.Subject, c.Baseline, m) }, centreOf) {
				rows = append(rows, row)
			}
		}
	}
	return rows
}

// metrics returns the metrics to compare for a scenario.
func (p *pairing) metrics(id string) []sample.Metric {
	var list []sample.Metric
	for _, info := range sample.Known() {
		if p.wanted(id, info.Metric) {
			list = append(list, info.Metric)
		}
	}
	return list
}

// planned reports whether both plans compare subject with baseline, and define
// both alike.
func (p *pairing) planned(subject, baseline string) bool {
	found := false
	for _, c := range p.a.first().side.Plan.Comparisons {
		found = found || c.Subject == subject && c.Baseline == baseline
	}
	return found && slices.Contains(p.common, subject) && slices.Contains(p.common, baseline)
}

// measure fills in what can be known from one row alone. It returns false if no
// run has a figure.
func (p *pairing) measure(r *Row, trials func(*columns) []float64, figure func([]float64) float64) bool {
	if !slices.ContainsFunc(slices.Concat(p.a, p.b), func(c *columns) bool { return len(trials(c)) > 0 }) {
		return false
	}
	r.Verdict = NotMeasured
	var whyA, whyB string
	r.before, whyA = p.a.figures(r, trials, figure)
	r.after, whyB = p.b.figures(r, trials, figure)
	r.A, r.B = sideInterval(r.before), sideInterval(r.after)
	if r.A == nil || r.B == nil {
		r.note("run A: ", whyA)
		r.note("run B: ", whyB)
		return true
	}
	r.Verdict = TooFew
	if !p.spreads(r, trials, figure) {
		r.Note = "a figure that is zero has no ratio, and the spread between runs is not known: compare several runs of each side"
		return true
	}
	e, ok, err := stats.Shift(r.scaled(r.after), r.scaled(r.before), r.spread, stats.Level)
	if !ok || err != nil {
		return true
	}
	r.P = &e.P
	if !r.linear {
		r.Ratio = &quantity.Interval{Median: math.Exp(e.Median), Low: math.Exp(e.Low), High: math.Exp(e.High), N: e.N, Level: e.Level}
	}
	return true
}

func (r *Row) note(side, why string) {
	if why == "" {
		return
	}
	if why == oneTrial {
		r.Verdict = TooFew
	}
	r.Note = side + why
}

// scaled returns the figures on the scale of the comparison: logarithms, or the
// figures themselves.
func (r *Row) scaled(figures []runFigure) []float64 {
	xs := make([]float64, len(figures))
	for i, f := range figures {
		xs[i] = f.value
		if !r.linear {
			xs[i] = math.Log(f.value)
		}
	}
	return xs
}

// judge corrects the p-values of a table's rows for their number, and sets the
// verdicts. With neutral no row is better or worse.
func judge(rows []Row, neutral bool) {
	var at []int
	var ps []float64
	for i := range rows {
		if rows[i].P != nil {
			at, ps = append(at, i), append(ps, *rows[i].P)
		}
	}
	adjusted := stats.Holm(ps)
	for k, i := range at {
		rows[i].Adjusted = &adjusted[k]
		rows[i].decide(len(at), neutral)
	}
}

// undecide sets all verdicts to Undecided. It is for runs that differ in more than
// the software.
func undecide(rows []Row) {
	for i := range rows {
		if rows[i].Adjusted != nil {
			rows[i].Verdict = Undecided
		}
	}
}

// decide sets the verdict of a tested row in a table with so many rows.
func (r *Row) decide(rows int, neutral bool) {
	info, _ := sample.Describe(r.Metric)
	switch {
	case *r.Adjusted > verdicts.Alpha:
		r.Verdict = Alike
		if *r.P <= verdicts.Alpha {
			r.Verdict = Suggested
		}
		// The first of Holm's m steps is a test at level alpha/m.
		if d, err := r.spread.Detectable(len(r.after), len(r.before), verdicts.Alpha/float64(rows), verdicts.Power); err == nil && !r.linear {
			if d = math.Expm1(d); units.Finite(d) {
				r.Smallest = &d
			}
			if r.Verdict == Alike && d > model.NoisyAbove {
				r.Verdict = TooNoisy
			}
		}
	case info.Better == 0 || neutral:
		r.Verdict = Differs
	case (r.change() > 0) == (info.Better > 0):
		r.Verdict = Better
	default:
		r.Verdict = Worse
	}
}

// change is the relative change from A to B; infinite if A is zero and B is
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
