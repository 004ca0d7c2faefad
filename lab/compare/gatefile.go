package compare

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// Gates is a parsed and valid gate file.
type Gates struct {
	List []Gate
	file gateFile
}

// Gate is a limit for changes from run A to run B.
type Gate struct {
	Metrics   []sample.Metric
	Scenarios []Pattern // empty: every scenario
	// WorseBy is the smallest change for the worse that fails, if it is
	// significant; relative to run A: 0.03 is 3 %.
	WorseBy float64
	Of      Of
	OnDoubt OnDoubt
	Line    int // line of the gate in its file, from 1
}

// Pattern selects scenarios (see matches). It has its place in the file.
type Pattern struct {
	Text         string
	Line, Column int // from 1
}

// Of is the figure that a gate evaluates.
type Of string

// The figures that a gate can evaluate.
const (
	OfValue Of = "value" // the figure of run B over that of run A
	OfRatio Of = "ratio" // the same of subject over baseline, as the plan compares them
)

// OnDoubt is the outcome if the noise hides a change of the gate's size.
type OnDoubt string

// The outcomes in doubt.
const (
	PassOnDoubt OnDoubt = "pass" // pass with a warning
	FailOnDoubt OnDoubt = "fail"
)

// Title describes the gate in a few words, such as "throughput worse by 3 %".
func (g *Gate) Title() string {
	var names []string
	for _, m := range g.Metrics {
		names = append(names, string(m))
	}
	title := strings.Join(names, ", ") + " worse by " + percent(g.WorseBy)
	if g.WorseBy == 0 {
		title = strings.Join(names, ", ") + " worse at all"
	}
	if g.Of == OfRatio {
		title = "ratio to the baseline of " + title
	}
	if len(g.Scenarios) > 0 {
		var patterns []string
		for _, p := range g.Scenarios {
			patterns = append(patterns, p.Text)
		}
		title += " in " + strings.Join(patterns, ", ")
	}
	return title
}

// matches reports whether the gate applies to a scenario.
func (g *Gate) matches(id string) bool {
	return len(g.Scenarios) == 0 || slices.ContainsFunc(g.Scenarios, func(p Pattern) bool { return matches(p.Text, id) })
}

// ParseGates parses a gate file; messages call it name. The error is a
// suite.Errors with all mistakes, each with its line. Whether the scenarios
// exist is checked later, when two runs are compared.
func ParseGates(name string, data []byte) (*Gates, error) {
	f := &gateFile{name: name}
	g := &Gates{}
	if root := f.document(data); root != nil {
		f.root(root, g)
	}
	if err := f.result(); err != nil {
		return nil, err
	}
	g.file = *f
	return g, nil
}

// bind returns an error for patterns that match none of ids.
func (g *Gates) bind(ids []string) error {
	f := gateFile{name: g.file.name, lines: g.file.lines}
	for i := range g.List {
		for _, p := range g.List[i].Scenarios {
			if !slices.ContainsFunc(ids, func(id string) bool { return matches(p.Text, id) }) {
				f.fail(place{p.Line, p.Column}, fmt.Sprintf("no scenario is called %q", clip(p.Text)), meant(p.Text, "scenarios", words(ids)))
			}
		}
	}
	return f.result()
}

// root reads the mapping of the file.
func (f *gateFile) root(n ast.Node, into *Gates) {
	keys := []string{"gates"}
	for _, e := range f.entries(n, "the file", keys) {
		list, ok := e.Value.(*ast.SequenceNode)
		if !ok || len(list.Values) == 0 {
			f.fail(f.place(e.Value, e.Key), "gates has no entry", `write a list below it: "- metric: throughput_bps", "  worse_by: 3%"`)
			return
		}
		if len(list.Values) > mostGates {
			f.fail(f.place(e.Value, e.Key), fmt.Sprintf("%d gates, %d are allowed", len(list.Values), mostGates), "give one gate several metrics and scenarios")
			return
		}
		for _, entry := range list.Values {
			into.List = append(into.List, f.gate(entry))
		}
	}
	if len(f.errs) == 0 && len(into.List) == 0 {
		f.fail(place{}, "the file has no gate", `start with the line "gates:" and a list below it`)
	}
}

const mostGates = 100

var gateKeys = []string{"metric", "scenarios", "worse_by", "of", "on_doubt"}

// gate reads one entry.
func (f *gateFile) gate(n ast.Node) Gate {
	g := Gate{Of: OfValue, OnDoubt: PassOnDoubt, Line: f.place(n, nil).line}
	given := make(map[string]bool)
	for _, e := range f.entries(n, "a gate", gateKeys) {
		key := e.Key.GetToken().Value
		given[key] = true
		switch key {
		case "metric":
			g.Metrics = f.metrics(e.Value, e.Key)
		case "scenarios":
			g.Scenarios = f.patterns(e.Value, e.Key)
		case "worse_by":
			g.WorseBy = f.share(e.Value, e.Key)
		case "of":
			g.Of = Of(f.choice(e.Value, e.Key, string(OfValue), string(OfRatio)))
		case "on_doubt":
			g.OnDoubt = OnDoubt(f.choice(e.Value, e.Key, string(PassOnDoubt), string(FailOnDoubt)))
		}
	}
	for _, key := range []string{"metric", "worse_by"} {
		if !given[key] && len(f.errs) == 0 {
			f.fail(f.place(n, nil), "the gate lacks "+key, fmt.Sprintf("add a line %q", key+": …"))
		}
	}
	f.possible(&g, n)
	return g
}

// possible reports a gate that nothing can fail as a mistake.
func (f *gateFile) possible(g *Gate, n ast.Node) {
	for _, m := range g.Metrics {
		if info, _ := sample.Describe(m); info.Better > 0 && g.WorseBy >= 1 {
			f.fail(f.place(n, nil), fmt.Sprintf("%s cannot get worse by %s", m, percent(g.WorseBy)), "more is better there, and it cannot fall by more than 100 %: write less")
		}
	}
}

// metrics reads one metric or a list of them.
func (f *gateFile) metrics(n ast.Node, key ast.Node) []sample.Metric {
	var list []sample.Metric
	for _, s := range f.texts(n, key, "a metric") {
		m, err := Metric(s.Text)
		if err != nil {
			f.fail(place{s.Line, s.Column}, fmt.Sprintf("there is no metric %q", clip(s.Text)), meant(s.Text, "metrics", metricNames()))
			continue
		}
		if info, _ := sample.Describe(m); info.Better == 0 {
			f.fail(place{s.Line, s.Column}, fmt.Sprintf("%s is neither better nor worse for being larger", m), "choose a metric that has a better direction, such as throughput_bps")
			continue
		}
		if slices.Contains(list, m) {
			f.fail(place{s.Line, s.Column}, fmt.Sprintf("%s stands here twice", m), "remove one of the two")
			continue
		}
		list = append(list, m)
	}
	return list
}

func (f *gateFile) patterns(n ast.Node, key ast.Node) []Pattern {
	list := f.texts(n, key, "a scenario")
	for _, p := range list {
		if !readable(p.Text) {
			f.fail(place{p.Line, p.Column}, fmt.Sprintf("the pattern %q cannot be read", clip(p.Text)), "write an id, a group, or a pattern with *, ? and [a-z]")
		}
	}
	return list
}

// share reads a percentage as a part of 1.
func (f *gateFile) share(n ast.Node, key ast.Node) float64 {
	const remedy = `write a percentage such as "3%"; "0%" means any significant change for the worse`
	text, ok := f.text(n, key, "a percentage")
	if !ok {
		return 0
	}
	number, isPercent := strings.CutSuffix(text.Text, "%")
	number = strings.TrimSpace(number)
	digits := strings.TrimLeft(number, "0123456789.") == ""
	v, err := strconv.ParseFloat(number, 64)
	if !isPercent || !digits || err != nil || v > 1000 {
		f.fail(place{text.Line, text.Column}, fmt.Sprintf("%q is not a percentage from 0%% to 1000%%", clip(text.Text)), remedy)
		return 0
	}
	return v / 100
}

func (f *gateFile) choice(n ast.Node, key ast.Node, allowed ...string) string {
	text, ok := f.text(n, key, "one of "+strings.Join(allowed, ", "))
	if ok && !slices.Contains(allowed, text.Text) {
		f.fail(place{text.Line, text.Column}, fmt.Sprintf("%q is not known here", clip(text.Text)), meant(text.Text, "allowed", allowed))
	}
	return text.Text
}

// percent prints a part of 1 as "3 %".
func percent(v float64) string {
	return strconv.FormatFloat(100*v, 'g', 3, 64) + " %"
}

// result returns nil, or the mistakes in the order of their lines.
func (f *gateFile) result() error {
	if len(f.errs) == 0 {
		return nil
	}
	slices.SortStableFunc(f.errs, func(a, b *suite.Error) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	return f.errs
}

// withoutMark removes the byte order mark that some editors write.
func withoutMark(data []byte) []byte { return bytes.TrimPrefix(data, []byte("\ufeff")) }
