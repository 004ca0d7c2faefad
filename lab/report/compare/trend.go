package compare

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"windtunnel/internal/phrase"
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/report/verdicts"
	"windtunnel/lab/sample"
	"windtunnel/lab/stats"
)

// Trend is one metric of a suite's scenarios over its runs.
type Trend struct {
	Suite string `json:"suite"`
	sample.Form
	Runs   int      `json:"runs"` // number of runs shown
	Series []Series `json:"series"`
	Notes  []string `json:"notes"`
}

// Series is one scenario's figures, oldest run first.
type Series struct {
	Scenario string        `json:"scenario"`
	Metric   sample.Metric `json:"metric"`
	Points   []TrendPoint  `json:"points"`
}

// TrendPoint is one run's figure.
type TrendPoint struct {
	Run      string            `json:"run"`
	Name     string            `json:"name,omitempty"`
	Started  time.Time         `json:"started"`
	Revision string            `json:"revision,omitempty"`
	Kernel   string            `json:"kernel,omitempty"`
	Figure   quantity.Interval `json:"figure"` // SI unit of the metric
	Change   *Change           `json:"change,omitempty"`
}

// Change is a run at which the level changed.
type Change struct {
	Before      float64      `json:"before"` // median of the runs since the previous change
	After       float64      `json:"after"`  // median of the runs until the next change
	Ratio       float64      `json:"ratio"`
	P           float64      `json:"p"`
	Environment []Difference `json:"environment"` // differences between this run and the previous one
}

// TrendOptions select what a trend shows. The zero value shows every scenario's
// throughput or transactions, in runs of the whole suite on the machine of the newest run.
type TrendOptions struct {
	Form           sample.Form
	Metric         sample.Metric
	Scenarios      []string
	Last           int // show at most so many of the newest runs; 0 is all
	AcrossMachines bool
}

// NewTrend follows a metric through runs of one suite. It leaves out and counts
// runs that are not complete, runs of another form, runs from another machine than the
// newest run, and runs in which the scenario was defined differently.
func NewTrend(suite string, runs []Side, opts TrendOptions) (*Trend, error) {
	t := &Trend{Suite: suite, Form: opts.Form}
	chosen := t.choose(runs, opts)
	if len(chosen) == 0 {
		form := ""
		if t.Form != (sample.Form{}) {
			form = fmt.Sprintf(" and has this form (%s)", t.Form.Words())
		}
		return nil, fmt.Errorf("trend of suite %s: none of its %s is complete%s; `windtunnel runs` lists them", suite, phrase.Count(len(runs), "run"), form)
	}
	t.Runs = len(chosen)
	newest := chosen[len(chosen)-1].side
	ids, err := selection(opts.Scenarios, newest.Plan.IDs())
	if err != nil {
		return nil, fmt.Errorf("trend of suite %s: %w", suite, err)
	}
	for _, id := range ids {
		t.add(id, chosen, opts)
	}
	if len(t.Series) == 0 {
		return nil, fmt.Errorf("trend of suite %s: no run has %s of %s; choose another --metric or --scenario", suite, cmp.Or(string(opts.Metric), "throughput or transactions"), phrase.Some(ids, 6))
	}
	t.mark(chosen)
	if t.Runs > 1 {
		t.Notes = append(t.Notes, "The runs were made at different times: the figures contain changes of the machine.")
	}
	t.Notes = list(t.Notes)
	return t, nil
}

// choose returns the runs that can be compared, oldest first.
func (t *Trend) choose(runs []Side, opts TrendOptions) []*columns {
	var complete []*columns
	var others []*sample.Run
	unfinished, foreign := 0, 0
	for i := range runs {
		switch run := &runs[i].Run; {
		case run.Status != sample.Complete:
			unfinished++
		case run.Options.Form() != opts.Form:
			others = append(others, run)
		default:
			complete = append(complete, newColumns(&runs[i]))
		}
	}
	slices.SortStableFunc(complete, func(a, b *columns) int { return a.side.Run.Started.Compare(b.side.Run.Started) })
	if len(complete) == 0 {
		return nil
	}
	newest := complete[len(complete)-1].side.Run.Environment
	if !opts.AcrossMachines {
		all := len(complete)
		complete = slices.DeleteFunc(complete, func(c *columns) bool {
			return len(otherMachine(environments(newest, c.side.Run.Environment))) > 0
		})
		foreign = all - len(complete)
	}
	if unfinished > 0 {
		t.Notes = append(t.Notes, fmt.Sprintf("Left out: %s that did not complete.", phrase.Count(unfinished, "run")))
	}
	t.noteForms(others)
	if foreign > 0 {
		t.Notes = append(t.Notes, fmt.Sprintf("Left out: %s from another machine than the newest run (--across-machines shows them).", phrase.Count(foreign, "run")))
	}
	if opts.Last > 0 && len(complete) > opts.Last {
		complete = complete[len(complete)-opts.Last:]
	}
	return complete
}

// noteForms adds a note with the forms of the runs that are left out because of their form.
func (t *Trend) noteForms(runs []*sample.Run) {
	if len(runs) == 0 {
		return
	}
	slices.SortStableFunc(runs, func(a, b *sample.Run) int { return b.Started.Compare(a.Started) })
	count := make(map[sample.Form]int)
	for _, r := range runs {
		count[r.Options.Form()]++
	}
	var forms []string
	for _, r := range runs {
		if form := r.Options.Form(); count[form] > 0 {
			forms = append(forms, fmt.Sprintf("%s (%d, such as %s)", cmp.Or(form.Words(), "the whole suite on this machine"), count[form], r.ID))
			count[form] = 0
		}
	}
	const most = 4
	list := strings.Join(forms[:min(most, len(forms))], "; ")
	if n := len(forms) - most; n > 0 {
		list += fmt.Sprintf("; and %d more", n)
	}
	t.Notes = append(t.Notes, fmt.Sprintf("Left out: %s with another testbed or other flags (--like RUN shows those): %s.", phrase.Count(len(runs), "run"), list))
}

// add appends the series of one scenario.
func (t *Trend) add(id string, runs []*columns, opts TrendOptions) {
	now := runs[len(runs)-1].side.scenario(id)
	metric := opts.Metric
	if metric == "" {
		metric = sample.Throughput
		if other(now) == sample.Throughput {
			metric = sample.Transactions
		}
	}
	series := Series{Scenario: id, Metric: metric}
	changed, without := 0, 0
	for _, c := range runs {
		then := c.side.scenario(id)
		if then == nil || len(definition(*then, *now)) > 0 {
			changed++
			continue
		}
		iv := quantity.MedianInterval(c.values(id, metric))
		if iv == nil {
			without++
			continue
		}
		run := c.side.Run
		series.Points = append(series.Points, TrendPoint{Run: run.ID, Name: run.Name, Started: run.Started, Revision: run.Environment.Revision, Kernel: run.Environment.Kernel, Figure: *iv})
	}
	if len(series.Points) == 0 {
		return
	}
	if changed > 0 {
		t.Notes = append(t.Notes, fmt.Sprintf("%s: left out %s without the scenario, or with another definition of it.", id, phrase.Count(changed, "run")))
	}
	if without > 0 {
		t.Notes = append(t.Notes, fmt.Sprintf("%s: left out %s without a valid figure.", id, phrase.Count(without, "run")))
	}
	t.Series = append(t.Series, series)
}

// mark finds the changes of level. The series share alpha, so that many
// scenarios do not make a false alarm more likely.
func (t *Trend) mark(runs []*columns) {
	byID := make(map[string]*columns, len(runs))
	for _, c := range runs {
		byID[c.side.Run.ID] = c
	}
	for i := range t.Series {
		s := &t.Series[i]
		groups := make([][]float64, len(s.Points))
		for k, p := range s.Points {
			groups[k] = byID[p.Run].values(s.Scenario, s.Metric)
		}
		for _, c := range stats.ChangePoints(groups, verdicts.Alpha/float64(len(t.Series))) {
			before, after := byID[s.Points[c.Index-1].Run], byID[s.Points[c.Index].Run]
			s.Points[c.Index].Change = &Change{Before: c.Before, After: c.After, Ratio: c.Ratio, P: c.P,
				Environment: list(environments(before.side.Run.Environment, after.side.Run.Environment))}
		}
	}
}
