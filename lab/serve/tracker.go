package serve

import (
	"cmp"
	"fmt"
	"maps"
	"time"

	"windtunnel/lab/report/quantity"
	"windtunnel/lab/report/sentences"
	"windtunnel/lab/results"
	"windtunnel/lab/sample"
	"windtunnel/lab/stats"
	"windtunnel/lab/suite"
)

// tracker follows a run from its samples.
type tracker struct {
	run      sample.Run
	plan     suite.Plan
	status   sample.Status
	rows     []*trackedRow          // in the plan's order
	byID     map[string]*trackedRow // by the ID of a scenario, as samples or the plan have it
	attempts []attempt              // in the order in which they were stored
	starts   []time.Time
	due      map[trial]bool // trials that must be repeated
	rejected int            // attempts whose trial must be repeated
	last     int64          // ID of the newest sample
}

// trackedRow has the trials of one scenario: between one pair of hosts, or between all.
type trackedRow struct {
	scenario *suite.Scenario
	cells    int // trials in a block
	skipped  string
	measured map[trial]bool    // with an attempt without the profiler
	values   map[trial]float64 // throughput or transactions, of attempts that count
	left     int               // attempts that do not count
	newest   string
}

// trial is one trial of a run.
type trial struct {
	scenario string
	block    int
}

// attempt is one line of the live view.
type attempt struct {
	ID       int64  `json:"id"`
	Time     string `json:"time"` // of the start, UTC
	Scenario string `json:"scenario"`
	Trial    int    `json:"trial"`             // from 1
	Attempt  int    `json:"attempt,omitempty"` // from 1; 0 for the first
	Text     string `json:"text"`              // figures or failure
	Counts   bool   `json:"counts"`
}

// liveView is the data of live.html, and of the event "state".
type liveView struct {
	ID       string        `json:"-"`
	Suite    string        `json:"-"`
	Started  time.Time     `json:"-"`
	Machine  string        `json:"-"`
	Last     int64         `json:"-"`
	Lines    []attempt     `json:"-"` // the newest first
	Status   sample.Status `json:"status"`
	Running  bool          `json:"running"`
	Measured int           `json:"measured"` // trials with an attempt
	Total    int           `json:"total"`    // planned trials
	Left     string        `json:"left"`     // what remains, in words
	Rows     []liveRow     `json:"rows"`
}

// liveRow is one scenario.
type liveRow struct {
	Scenario string `json:"scenario"`
	Trials   string `json:"trials"` // "3 of 10"
	Median   string `json:"median"`
	Newest   string `json:"newest"`
	Rejected int    `json:"rejected"` // attempts that do not count
	Skipped  string `json:"skipped,omitempty"`
}

func newTracker(head *results.RunData) *tracker {
	plan, skipped := head.Plan, head.Run.Skipped
	t := &tracker{run: head.Run, plan: plan, status: head.Run.Status, byID: make(map[string]*trackedRow), due: make(map[trial]bool)}
	t.plan.Skipped = skipped
	pairs := 1
	if plan.Large() {
		pairs = plan.Matrix.Len()
	} else {
		plan = *plan.Pairwise()
	}
	for i := range plan.Scenarios {
		sc := &plan.Scenarios[i]
		id, _, _ := suite.SplitPairID(sc.ID)
		row := &trackedRow{scenario: sc, cells: pairs, skipped: cmp.Or(skipped[sc.ID], skipped[id]), measured: make(map[trial]bool), values: make(map[trial]float64)}
		t.rows, t.byID[sc.ID] = append(t.rows, row), row
	}
	for id := range skipped {
		if row := t.row(id); row != nil && row.scenario.ID != id { // one pair of the row
			row.cells--
		}
	}
	return t
}

// row returns the row of a sample's scenario; nil if there is none.
func (t *tracker) row(scenario string) *trackedRow {
	if row := t.byID[scenario]; row != nil {
		return row
	}
	id, _, _ := suite.SplitPairID(scenario)
	return t.byID[id]
}

// add adds the new samples of a run, and its status.
func (t *tracker) add(p *results.Progress) {
	t.status = p.Status
	for i := range p.Samples {
		smp := &p.Samples[i]
		a := attempt{ID: p.IDs[i], Time: smp.Started.UTC().Format(time.TimeOnly), Scenario: smp.Scenario, Trial: smp.Block + 1, Text: sentences.Attempt(smp), Counts: smp.Counts()}
		if smp.Attempt > 0 {
			a.Attempt = smp.Attempt + 1
		}
		t.attempts, t.starts, t.last = append(t.attempts, a), append(t.starts, smp.Started), a.ID
		row, one := t.row(smp.Scenario), trial{smp.Scenario, smp.Block}
		if row == nil || smp.Profiled {
			continue
		}
		row.measured[one], row.newest = true, a.Text
		t.repeat(one, !smp.Settled() && smp.Attempt+1 < suite.Attempts)
		if !smp.Counts() {
			row.left++
		} else if v, ok := smp.Metrics[row.metric()]; ok {
			row.values[one] = v
		}
	}
}

// repeat notes whether a trial must be repeated. A block's repeats end before the next block.
func (t *tracker) repeat(one trial, due bool) {
	maps.DeleteFunc(t.due, func(other trial, _ bool) bool { return other == one || other.block < one.block })
	if due {
		t.due[one] = true
		t.rejected++
	}
}

// metric is the metric of the row's median.
func (r *trackedRow) metric() sample.Metric {
	if r.scenario.Workload.Kind.Exchange() {
		return sample.Transactions
	}
	return sample.Throughput
}

// lines returns the newest attempts, the newest first.
func (t *tracker) lines() []attempt {
	var list []attempt
	for i := len(t.attempts) - 1; i >= max(0, len(t.attempts)-mostLines); i-- {
		list = append(list, t.attempts[i])
	}
	return list
}

func (t *tracker) view() liveView {
	v := liveView{ID: t.run.ID, Suite: t.run.Suite, Started: t.run.Started, Machine: t.run.Environment.Hostname, Last: t.last, Status: t.status, Running: t.status == sample.Running}
	blocks := t.plan.Trials
	for _, r := range t.rows {
		for one := range r.measured {
			blocks = max(blocks, one.block+1)
		}
	}
	for _, r := range t.rows {
		v.Rows = append(v.Rows, r.view(blocks))
		if r.skipped == "" {
			v.Total += r.cells * blocks
			v.Measured += len(r.measured)
		}
	}
	v.Left = t.left(v)
	return v
}

func (r *trackedRow) view(blocks int) liveRow {
	row := liveRow{Scenario: r.scenario.ID, Trials: fmt.Sprintf("%d of %d", len(r.measured), r.cells*blocks), Median: "—", Newest: cmp.Or(r.newest, "—"), Rejected: r.left, Skipped: r.skipped}
	var values []float64
	for _, v := range r.values {
		values = append(values, v)
	}
	if median, ok, err := stats.Median(values); ok && err == nil {
		row.Median = quantity.ScaleOf(r.metric(), median).Print(median)
	}
	return row
}

// left returns the remaining time in words. The usual time between two attempts leaves out
// the time between a run and its resumption.
func (t *tracker) left(v liveView) string {
	if !v.Running {
		return ""
	}
	unfinished := v.Total - v.Measured + len(t.due)
	if unfinished <= 0 {
		return "the planned trials are measured"
	}
	parallel := 1
	if t.plan.Matrix != nil {
		parallel = t.plan.Matrix.Concurrent()
	}
	var gaps []float64
	for i := parallel; i < len(t.starts); i++ {
		gaps = append(gaps, float64(t.starts[i].Sub(t.starts[i-parallel]))/float64(parallel))
	}
	usual, _, _ := stats.Median(gaps) // 0 without gaps
	left := t.plan.Forecast().Left(suite.Pace{
		Elapsed: time.Duration(usual * float64(len(gaps))), Attempts: len(gaps), Rejected: t.rejected, Unfinished: unfinished, Most: suite.Attempts,
	}).Round(time.Second)
	if t.plan.Stop.Precision > 0 {
		return fmt.Sprintf("at least %v left", left)
	}
	return fmt.Sprintf("about %v left", left)
}
