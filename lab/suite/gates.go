package suite

import (
	"fmt"
	"path"
	"slices"

	"github.com/goccy/go-yaml/ast"

	"windtunnel/internal/plainyaml"
	"windtunnel/lab/sample"
	"windtunnel/lab/units"
)

// MaxGateBytes is the largest size of a gate file.
const MaxGateBytes = 64 << 10

// gateLanguage has the limits and words of gate files.
var gateLanguage = dialect{
	Limits: plainyaml.Limits{
		Bytes: MaxGateBytes, Nesting: 8, Indent: 100, Tokens: 10_000,
		Shape:  "it needs no more than a list of gates with five keys each",
		Split:  "give one gate several metrics and scenarios",
		Anchor: `put a pattern into quotes: "*/stream"`,
	},
	start: `start with the line "gates:" and a list below it`,
}

// GateFile is a parsed and valid gate file of `windtunnel compare`.
type GateFile struct {
	Name  string // name of the file in messages
	Gates []Gate
	lines []string
}

// Gate is a limit for changes from run A to run B.
type Gate struct {
	Metrics   []sample.Metric
	Scenarios []Pattern // none: every scenario
	// WorseBy is the smallest change for the worse that fails, if it is
	// significant; relative to run A: 0.03 is 3 %.
	WorseBy float64
	Of      Of
	OnDoubt OnDoubt
	Line    int // of the gate in its file, from 1
}

// Pattern selects scenarios (see Matches). It has its place in the file.
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
	UnjudgedOnDoubt OnDoubt = "unjudged" // the comparison ends with the status "not judged"
	PassOnDoubt     OnDoubt = "pass"     // with a warning
	FailOnDoubt     OnDoubt = "fail"
)

type gateSpec struct {
	Gate
	metrics, scenarios at[[]at[string]]
}

var gateKeys = mapping[gateSpec]{what: "a gate", alone: true, fields: []field[gateSpec]{
	bind("metric", oneOrMore[string](gatedMetric), func(g *gateSpec) *at[[]at[string]] { return &g.metrics }, "Metrics that the gate judges.").must(),
	bind("scenarios", oneOrMore[string](sentence(200)), func(g *gateSpec) *at[[]at[string]] { return &g.scenarios }, "Ids, groups or patterns of scenarios; default is every scenario."),
	set("worse_by", fraction(0, 10), func(g *gateSpec) *float64 { return &g.WorseBy }, `Smallest change for the worse that fails the gate; "0%": any significant change.`).must(),
	setOr("of", choice(OfValue, OfRatio), func(g *gateSpec) *Of { return &g.Of }, OfValue, "What the gate compares: the figure itself, or its ratio to the baseline."),
	setOr("on_doubt", choice(UnjudgedOnDoubt, PassOnDoubt, FailOnDoubt), func(g *gateSpec) *OnDoubt { return &g.OnDoubt }, UnjudgedOnDoubt, "Result of the gate if the noise could hide a change of this size."),
}}

// gatedMetric is a metric with a better direction, as a gate needs.
var gatedMetric = single[string]{wants: "a metric", parse: func(text string) (string, string, string) {
	info, known := sample.Describe(sample.Metric(text))
	switch near := Nearest(text, sample.Names()); {
	case !known && near != "":
		return "", fmt.Sprintf("there is no metric %q", clip(text)), fmt.Sprintf("did you mean %q?", near)
	case !known:
		return "", fmt.Sprintf("there is no metric %q", clip(text)), Suggest(text, "metrics", sample.Names())
	case info.Better == 0:
		return "", "the metric " + text + " has no better direction", "choose a metric that has a better direction, such as throughput_bps"
	}
	return text, "", ""
}}

type gatesSpec struct{ gates at[[]at[gateSpec]] }

var gatesKeys = mapping[gatesSpec]{what: "the file", alone: true, fields: []field[gatesSpec]{
	bind[gatesSpec, []at[gateSpec]]("gates", gateList{list[gateSpec]{gateKeys, 1, 100, false}}, func(g *gatesSpec) *at[[]at[gateSpec]] { return &g.gates }, "The gates.").must(),
}}

// gateList is the list of gates. It must not be empty.
type gateList struct{ list[gateSpec] }

func (f gateList) read(j *journal, n ast.Node) ([]at[gateSpec], bool) {
	if seq, ok := n.(*ast.SequenceNode); !ok || len(seq.Values) == 0 {
		j.fail(nodePosition(n), "gates has no entry", `write a list below it: "- metric: throughput_bps", "  worse_by: 3%"`)
		return nil, false
	}
	return f.list.read(j, n)
}

// ParseGates parses a gate file; messages call it name. The error is an Errors
// with all mistakes, each with its line. Bind checks whether the scenarios
// exist.
func ParseGates(name string, data []byte) (*GateFile, error) {
	j := &journal{file: name}
	f := &GateFile{Name: name}
	if root := document(j, data, gateLanguage); root != nil {
		spec, _ := gatesKeys.read(j, root)
		for _, g := range spec.gates.V {
			f.Gates = append(f.Gates, gateOf(j, g))
		}
	}
	f.lines = j.lines
	return f, j.result()
}

// gateOf completes a gate, and checks rules that involve several keys.
func gateOf(j *journal, g at[gateSpec]) Gate {
	out := g.V.Gate
	out.Line = g.Pos.line
	for _, m := range g.V.metrics.V {
		metric := sample.Metric(m.V)
		info, known := sample.Describe(metric)
		switch {
		case !known: // already reported
		case slices.Contains(out.Metrics, metric):
			j.fail(m.Pos, fmt.Sprintf("%s is listed twice", m.V), "remove one of the two")
		case info.Better > 0 && out.WorseBy >= 1:
			j.fail(g.Pos, fmt.Sprintf("%s cannot get worse by %s", m.V, units.FormatPercent(out.WorseBy)), "it cannot fall by more than 100 %: write a smaller value")
		}
		out.Metrics = append(out.Metrics, metric)
	}
	for _, p := range g.V.scenarios.V {
		if p.V != "" && j.readable(p) {
			out.Scenarios = append(out.Scenarios, Pattern{p.V, p.Pos.line, p.Pos.column})
		}
	}
	return out
}

// readable adds an error for a pattern with invalid syntax.
func (j *journal) readable(p at[string]) bool {
	_, err := path.Match(p.V, "")
	if err != nil {
		j.fail(p.Pos, fmt.Sprintf("the pattern %q cannot be read", clip(p.V)), "write an id, a group, or a pattern with *, ? and [a-z]")
	}
	return err == nil
}

// Bind returns an error for patterns that match none of ids.
func (f *GateFile) Bind(ids []string) error {
	j := &journal{file: f.Name, lines: f.lines}
	for _, g := range f.Gates {
		for _, p := range g.Scenarios {
			named := func(id string) bool { ok, err := Matches(p.Text, id); return ok && err == nil }
			if !slices.ContainsFunc(ids, named) {
				j.fail(position{p.Line, p.Column}, fmt.Sprintf("there is no scenario %q", clip(p.Text)), Suggest(p.Text, "scenarios", NamesFor(ids)))
			}
		}
	}
	return j.result()
}
