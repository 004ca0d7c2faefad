package compare

import (
	"fmt"
	"slices"

	"windtunnel/lab/report/verdicts"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
	"windtunnel/lab/units"
)

// Judgement is the result of all gates.
type Judgement struct {
	Gates []GateResult `json:"gates"`
}

// GateResult is one gate with every row that it evaluated.
type GateResult struct {
	Title    string    `json:"title"`
	Line     int       `json:"line"` // in the gate file
	Findings []Finding `json:"findings"`
}

// Finding is the result of a gate for one row.
type Finding struct {
	Scenario string        `json:"scenario"`
	Metric   sample.Metric `json:"metric"`
	Outcome  Outcome       `json:"outcome"`
	Text     string        `json:"text"` // the figures in one line
}

// Outcome of a gate on one row.
type Outcome string

// The outcomes.
const (
	Passed   Outcome = "passed"
	Failed   Outcome = "failed"
	Doubtful Outcome = "doubtful" // the noise hides a change of the gate's size, and the gate says `on_doubt: pass`
	Unjudged Outcome = "unjudged" // the row has no figures to evaluate, or the noise hides a change of the gate's size
)

// Count returns the number of rows with an outcome, over all gates.
func (j *Judgement) Count(o Outcome) int {
	n := 0
	for _, g := range j.Gates {
		for _, f := range g.Findings {
			if f.Outcome == o {
				n++
			}
		}
	}
	return n
}

// Status is the exit status of a comparison with gates: 1 if one failed; else 2
// if a row could not be evaluated; else 0.
func (j *Judgement) Status() int {
	switch {
	case j.Count(Failed) > 0:
		return 1
	case j.Count(Unjudged) > 0:
		return 2
	}
	return 0
}

// gates evaluates the requested gates.
func (p *pairing) gates(c *Comparison) error {
	if p.opts.Gates == nil {
		return nil
	}
	if c.OtherMachine && !c.Across {
		return fmt.Errorf("judge the gates of %s: %w (%s): the machine can cause the differences; run both on one machine, or give --across-machines", p.opts.Gates.file.Name, errOtherMachine, changes(otherMachine(c.Environment)))
	}
	judgement := &Judgement{}
	for i := range p.opts.Gates.List {
		g := &p.opts.Gates.List[i]
		result, err := p.gate(c, g)
		if err != nil {
			return fmt.Errorf("%s:%d: %w", p.opts.Gates.file.Name, g.Line, err)
		}
		judgement.Gates = append(judgement.Gates, result)
	}
	c.Judgement = judgement
	return nil
}

// gate evaluates one gate's rows. A gate without rows would always pass, so
// that is an error.
func (p *pairing) gate(c *Comparison, g *Gate) (GateResult, error) {
	rows := c.Values
	if g.Of == suite.OfRatio {
		rows = c.Ratios
	}
	result := GateResult{Title: g.Title(), Line: g.Line}
	judged := make(map[sample.Metric]bool)
	matched := make(map[string]bool)
	for i := range rows {
		r := &rows[i]
		if !slices.Contains(g.Metrics, r.Metric) || !g.matches(r.Scenario) {
			continue
		}
		judged[r.Metric] = true
		for _, pattern := range g.Scenarios {
			matched[pattern.Text] = matched[pattern.Text] || matches(pattern.Text, r.Scenario)
		}
		outcome, text := g.judge(r)
		result.Findings = append(result.Findings, Finding{r.Scenario, r.Metric, outcome, text})
	}
	for _, m := range g.Metrics {
		if !judged[m] {
			return result, g.noRows(fmt.Sprintf("no scenario that both runs have in common has %s", m))
		}
	}
	for _, pattern := range g.Scenarios {
		if !matched[pattern.Text] {
			return result, g.noRows(fmt.Sprintf("no scenario that matches %q is compared%s", pattern.Text, p.why(pattern.Text)))
		}
	}
	return result, nil
}

func (g *Gate) noRows(what string) error {
	if g.Of == suite.OfRatio {
		return fmt.Errorf("no row matches the gate: as a ratio to a baseline of the plan, %s; name subjects of the suite's comparisons, or judge of: value", what)
	}
	return fmt.Errorf("no row matches the gate: %s; correct its metric or scenarios", what)
}

// why explains why scenarios of a pattern are not compared.
func (p *pairing) why(pattern string) string {
	for _, l := range p.leftOut {
		if matches(pattern, l.Scenario) {
			return fmt.Sprintf(" (%s: %s)", l.Scenario, l.Reason)
		}
	}
	return ""
}

// judge returns the outcome of the gate for a row, with a text.
func (g *Gate) judge(r *Row) (Outcome, string) {
	figures := r.line()
	if r.Adjusted == nil || r.Verdict == TooFew || r.Verdict == NotMeasured || r.Verdict == Undecided {
		return Unjudged, figures
	}
	info, _ := sample.Describe(r.Metric)
	worse := -float64(info.Better) * r.change()
	// Rounding must not decide for a change of exactly the gate's size.
	const rounding = 1e-9
	if *r.Adjusted <= verdicts.Alpha {
		if worse > 0 && worse >= g.WorseBy-rounding {
			return Failed, figures
		}
		return Passed, figures
	}
	if g.WorseBy == 0 || g.sees(r, worse) {
		return Passed, figures
	}
	figures += fmt.Sprintf("; the spread between runs hides a change of %s: name more runs for each side", units.FormatPercent(g.WorseBy))
	switch g.OnDoubt {
	case suite.FailOnDoubt:
		return Failed, figures
	case suite.PassOnDoubt:
		return Doubtful, figures
	}
	return Unjudged, figures + ", or write on_doubt: pass or fail in the gate"
}

// sees reports whether the row would have shown a change of the gate's size.
// Counts that are sometimes zero have no smallest detectable ratio; for them it
// reports whether they have not grown at all.
func (g *Gate) sees(r *Row, worse float64) bool {
	if r.Smallest == nil {
		return worse <= 0
	}
	return *r.Smallest <= g.WorseBy
}
