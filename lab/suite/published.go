package suite

import (
	"fmt"
	"math"
	"math/big"
	"regexp"
	"slices"
	"strings"

	"windtunnel/lab/sample"
)

// scales maps the SI unit of a metric to the units that documents print, with their
// sizes in the SI unit.
var scales = map[string][]scale{
	"bit/s":     {{"bit/s", "1"}, {"kbit/s", "1e3"}, {"Mbit/s", "1e6"}, {"Gbit/s", "1e9"}, {"bps", "1"}, {"kbps", "1e3"}, {"Kbps", "1e3"}, {"Mbps", "1e6"}, {"Gbps", "1e9"}, {"MiB/s", "8388608"}, {"KB/sec", "8e3"}, {"MB/sec", "8e6"}},
	"ns":        {{"ns", "1"}, {"µs", "1e3"}, {"us", "1e3"}, {"ms", "1e6"}, {"s", "1e9"}, {"us one-way", "2e3"}},
	"s":         {{"s", "1"}, {"ms", "1e-3"}},
	"%":         {{"%", "1"}},
	"1/s":       {{"1/s", "1"}, {"k/s", "1e3"}, {"M/s", "1e6"}},
	"cores":     {{"cores", "1"}, {"%", "1e-2"}},
	"ns/B":      {{"ns/B", "1"}},
	"ns/packet": {{"ns/packet", "1"}},
	"B":         {{"B", "1"}, {"KiB", "1024"}, {"MiB", "1048576"}, {"GiB", "1073741824"}},
	"segments":  {{"segments", "1"}, {"", "1"}},
	"packets":   {{"packets", "1"}, {"", "1"}},
	"1":         {{"", "1"}, {"%", "1e-2"}},
}

// scale is a printed unit and its factor, a decimal number.
type scale struct{ unit, factor string }

// metric is the name of a sample.Metric.
var metric = single[string]{"the name of a metric", "", func(text string) (string, string, string) {
	if _, known := sample.Describe(sample.Metric(text)); !known {
		return "", fmt.Sprintf("%q is not a metric", clip(text)), Suggest(text, "metrics", sample.Names())
	}
	return text, "", ""
}, object{"enum": sample.Names()}}

// published adds the figures of documents in the units of their metrics.
func (x *expansion) published() {
	known := x.plan.IDs()
	seen := map[[3]string]position{}
	for _, e := range x.s.published.V {
		p := e.V
		if !x.checkTableCell(e, seen) || !x.checkComparable(e, known) {
			continue
		}
		out := p.Published
		if out.Source == "" {
			out.Source = x.sourceOf(p.Table)
		}
		if problem, remedy := out.read(); problem != "" {
			x.j.fail(p.keys["value"], problem, remedy)
			continue
		}
		x.plan.Published = append(x.plan.Published, out)
	}
	x.checkEmptyTables()
}

// checkComparable reports errors of a figure that cannot be compared. It returns false
// if the figure must be omitted. If the plan is partial, the figure's scenario may be
// missing without an error.
func (x *expansion) checkComparable(e at[publishedSpec], known []string) bool {
	p := e.V
	if !p.keys.has("scenario") && !p.keys.has("metric") && !p.keys.has("baseline") && p.keys.has("table") && p.keys.has("note") {
		return true
	}
	if !p.keys.has("scenario") || !p.keys.has("metric") {
		x.j.fail(e.Pos, "a published figure lacks scenario or metric", "add both keys; a cell of a table may omit both if its note says why no scenario measures the figure")
		return false
	}
	for i, id := range []string{p.Scenario, p.Baseline} {
		if id == "" || slices.Contains(known, id) {
			continue
		}
		if !x.partial {
			x.j.fail(p.keys[[]string{"scenario", "baseline"}[i]], fmt.Sprintf("there is no scenario %q", id), Suggest(id, "scenarios", known))
		}
		return false
	}
	if p.keys.has("baseline") && p.Baseline == p.Scenario {
		x.j.fail(p.keys["baseline"], fmt.Sprintf("%q is both the scenario and the baseline", p.Baseline), "set baseline to the other scenario of the change, or remove baseline")
		return false
	}
	_, isMetric := sample.Describe(sample.Metric(p.Metric))
	return isMetric && p.Scenario != "" && p.Printed != "" // else unreadable; already reported
}

// read parses Printed, and sets Value, Unit, Factor and Step.
func (p *Published) read() (problem, remedy string) {
	if p.Metric == "" {
		return "", ""
	}
	if p.Baseline != "" {
		return p.readChange()
	}
	info, _ := sample.Describe(sample.Metric(p.Metric))
	if p.Value, problem, remedy = inUnit(p.Printed, info.Unit); problem != "" {
		return problem, remedy
	}
	digits, unit := splitUnit(p.Printed)
	i := slices.IndexFunc(scales[info.Unit], func(s scale) bool { return s.unit == unit })
	factor, _ := new(big.Rat).SetString(scales[info.Unit][i].factor)
	p.Unit = unit
	p.Factor, _ = factor.Float64()
	p.Step, _ = factor.Mul(factor, lastDigit(digits)).Float64()
	return "", ""
}

// changePattern matches a printed change: "-27 %", "+3%".
var changePattern = regexp.MustCompile(`^([-+\x{2212}]) ?([0-9]{1,6}(?:\.[0-9]{1,9})?) ?%$`)

// readChange converts a printed change into a ratio: "-27 %" into 0.73.
func (p *Published) readChange() (problem, remedy string) {
	m := changePattern.FindStringSubmatch(p.Printed)
	if m == nil {
		return fmt.Sprintf("%q is not a change", clip(p.Printed)), `write it with its sign and %, such as "-27 %" for 0.73 of the baseline`
	}
	percent, _ := new(big.Rat).SetString(m[2])
	if m[1] != "+" {
		percent.Neg(percent)
	}
	hundred := big.NewRat(100, 1)
	ratio := new(big.Rat).Quo(percent.Add(percent, hundred), hundred)
	if ratio.Sign() < 0 {
		return fmt.Sprintf("%q is a decrease of more than 100 %%", clip(p.Printed)), "write a change of -100 % or more"
	}
	p.Value, _ = ratio.Float64()
	p.Step, _ = new(big.Rat).Quo(lastDigit(m[2]), hundred).Float64()
	return "", ""
}

// lastDigit returns one unit of the last digit of a decimal number: 0.01 for "1.25".
func lastDigit(digits string) *big.Rat {
	_, fraction, _ := strings.Cut(digits, ".")
	return new(big.Rat).SetFrac(big.NewInt(1), new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(len(fraction))), nil))
}

// splitUnit splits a printed figure into number and unit.
func splitUnit(text string) (digits, unit string) {
	rest := strings.TrimLeft(text, "0123456789.")
	return strings.TrimSuffix(text, rest), strings.TrimSpace(rest)
}

// where returns the table cell of a figure. For a figure without a table it returns
// the source.
func (p Published) where() string {
	if p.Table == "" {
		return p.Source
	}
	return fmt.Sprintf("%s: %s, %s", p.Table, p.Row, p.Column)
}

// inUnit reads a printed figure and returns it in unit; the decimal value is
// converted exactly and rounded once.
func inUnit(text, unit string) (value float64, problem, remedy string) {
	exact, problem, remedy := exactly(text, unit)
	if problem != "" {
		return 0, problem, remedy
	}
	if value, _ = exact.Float64(); math.IsInf(value, 0) {
		return 0, fmt.Sprintf("%q is too large", clip(text)), remedy
	}
	return value, "", ""
}

// exactly reads a printed figure and returns it in unit.
func exactly(text, unit string) (value *big.Rat, problem, remedy string) {
	digits, printedUnit := splitUnit(text)
	var known []string
	for _, s := range scales[unit] {
		known = append(known, strings.TrimSpace("7.5 "+s.unit))
	}
	remedy = "write the figure with its unit, such as " + enumerate(known)
	r, ok := new(big.Rat).SetString(digits)
	if digits == "" || !ok || strings.HasPrefix(digits, ".") || strings.HasSuffix(digits, ".") {
		return nil, fmt.Sprintf("%q does not start with a number such as 7375.159", clip(text)), remedy
	}
	i := slices.IndexFunc(scales[unit], func(s scale) bool { return s.unit == printedUnit })
	if i < 0 {
		problem = fmt.Sprintf("%q is not a unit of this metric", printedUnit)
		if printedUnit == "" {
			problem = fmt.Sprintf("%q has no unit", clip(text))
		}
		return nil, problem, remedy
	}
	factor, _ := new(big.Rat).SetString(scales[unit][i].factor)
	return r.Mul(r, factor), "", remedy
}

// Cause is a known reason why measured figures differ from a document.
type Cause struct {
	Subject  string   `json:"subject"`            // scenario ID
	Baseline string   `json:"baseline,omitempty"` // scenario ID; "" for every baseline, and for values without one
	Metrics  []string `json:"metrics,omitempty"`  // each a sample.Metric; nil for all
	Verdict  Ruling   `json:"verdict,omitempty"`  // replaces the verdict on the figure; "" if the figure is judged
	Cause    string   `json:"cause"`
}

// Ruling is a verdict that does not depend on the measured figure.
type Ruling string

const (
	ByConstruction Ruling = "by construction"       // the suite set the figure, so that it could not come out otherwise
	NotHere        Ruling = "cannot be judged here" // the lab lacks what the figure depends on
)

// causes adds the causes of differences. It replaces groups by the ids of their scenarios.
func (x *expansion) causes() {
	for _, e := range x.s.causes.V {
		c := e.V
		metrics := valuesOf(c.metrics.V, "")
		if !c.metrics.Set {
			metrics = nil
		}
		for _, subject := range c.subjects.V {
			for _, p := range x.differing(c, subject) {
				x.plan.Causes = append(x.plan.Causes, Cause{Subject: p.Subject, Baseline: p.Baseline, Metrics: metrics, Verdict: c.verdict.V, Cause: c.cause.V})
			}
		}
	}
}

// differing returns the pairs of subject and baseline that a cause explains. If the cause has
// no baseline, the pairs have only a subject.
func (x *expansion) differing(c causeSpec, subject at[string]) (pairs []Comparison) {
	if c.baseline.Set {
		return x.pairs(c.baseline, subject)
	}
	ids, _, _ := x.lookUp(subject)
	for _, id := range ids {
		pairs = append(pairs, Comparison{Subject: id})
	}
	return pairs
}

// CauseOf returns the known cause of a difference of a figure; "" if there is none.
// baseline is "" for a value.
func (p *Plan) CauseOf(subject, baseline, metric string) string {
	return p.causeOf(subject, baseline, metric, false).Cause
}

// RulingOf returns the verdict that replaces the verdict on a figure, with its reason; "" if the
// figure is judged.
func (p *Plan) RulingOf(subject, baseline, metric string) (verdict Ruling, reason string) {
	c := p.causeOf(subject, baseline, metric, true)
	return c.Verdict, c.Cause
}

func (p *Plan) causeOf(subject, baseline, metric string, ruling bool) Cause {
	for _, c := range p.Causes {
		if (c.Verdict != "") == ruling && c.Subject == subject && (c.Baseline == "" || c.Baseline == baseline) && (c.Metrics == nil || slices.Contains(c.Metrics, metric)) {
			return c
		}
	}
	return Cause{}
}

// tables adds the tables of documents, without their figures.
func (x *expansion) tables() {
	for _, t := range x.s.tables.V {
		t.value.Name = t.name
		x.plan.Tables = append(x.plan.Tables, t.value)
	}
}

// checkTableCell reports two cells with the same row and column of a table, and a
// figure without a source. It returns false if the entry cannot be used.
func (x *expansion) checkTableCell(e at[publishedSpec], seen map[[3]string]position) bool {
	p := e.V
	if !p.keys.has("table") {
		if p.keys.has("row") || p.keys.has("column") {
			x.j.fail(e.Pos, "a row or column without a table", "add the key table with a name from the block tables")
			return false
		}
		if !p.keys.has("source") {
			x.j.fail(e.Pos, "a published figure lacks source", `add a line "source: …" with the document and the page, or make it a cell of a table`)
			return false
		}
		return true
	}
	names := namesOf(x.s.tables.V)
	switch {
	case p.Table == "" || x.s.tables.Set && names == nil:
		return false // unreadable; already reported
	case !slices.Contains(names, p.Table):
		x.j.fail(p.keys["table"], fmt.Sprintf("%q is not defined under tables", p.Table), Suggest(p.Table, "tables", names))
		return false
	case !p.keys.has("row") || !p.keys.has("column"):
		x.j.fail(e.Pos, "a cell of a table lacks row or column", "name both, as the document does")
		return false
	}
	cell := [3]string{p.Table, p.Row, p.Column}
	if first, taken := seen[cell]; taken {
		x.j.fail(e.Pos, fmt.Sprintf("table %q has two cells in row %q and column %q, the first in line %d", p.Table, p.Row, p.Column, first.line), "remove or rename one of the two")
		return false
	}
	seen[cell] = e.Pos
	return true
}

func (x *expansion) sourceOf(table string) string {
	for _, t := range x.plan.Tables {
		if t.Name == table {
			return t.Source
		}
	}
	return ""
}

// checkEmptyTables reports tables without a figure.
func (x *expansion) checkEmptyTables() {
	if x.s.published.Set && x.s.published.V == nil {
		return // unreadable; already reported
	}
	for _, t := range x.s.tables.V {
		if !slices.ContainsFunc(x.s.published.V, func(p at[publishedSpec]) bool { return p.V.Table == t.name }) {
			x.j.fail(t.pos, fmt.Sprintf("table %q has no figures", t.name), fmt.Sprintf("add figures with %q under published, or remove it", "table: "+t.name))
		}
	}
}

// keepPublished removes the figures of scenarios that are not in kept. If the scenario
// of one cell is in kept, the table keeps all its cells; the report marks the cells
// that were not measured.
func (p *Plan) keepPublished(kept map[string]bool) {
	stays := map[string]bool{}
	for _, f := range p.Published {
		if f.Table != "" && kept[f.Scenario] && (f.Baseline == "" || kept[f.Baseline]) {
			stays[f.Table] = true
		}
	}
	p.Published = slices.DeleteFunc(p.Published, func(f Published) bool {
		return !stays[f.Table] && (f.Table != "" || !kept[f.Scenario])
	})
	p.Tables = slices.DeleteFunc(p.Tables, func(t PublishedTable) bool { return !stays[t.Name] })
}
