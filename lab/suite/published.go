package suite

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"windtunnel/lab/sample"
)

// scales gives, for the stored unit of a metric, the units in which documents
// print it and what one of them is.
var scales = map[string][]scale{
	"bit/s":     {{"bit/s", "1"}, {"kbit/s", "1e3"}, {"Mbit/s", "1e6"}, {"Gbit/s", "1e9"}, {"bps", "1"}, {"kbps", "1e3"}, {"Kbps", "1e3"}, {"Mbps", "1e6"}, {"Gbps", "1e9"}, {"MiB/s", "8388608"}},
	"ns":        {{"ns", "1"}, {"µs", "1e3"}, {"us", "1e3"}, {"ms", "1e6"}, {"s", "1e9"}},
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
type metric struct{}

func metricNames() []string {
	var names []string
	for _, i := range sample.Known() {
		names = append(names, string(i.Metric))
	}
	return names
}

func (metric) read(j *journal, n ast.Node) (string, bool) {
	s, ok := scalarOf(j, n, "the name of a metric", "")
	if !ok {
		return "", false
	}
	if _, known := sample.Describe(sample.Metric(s.text)); !known {
		j.fail(s.pos, fmt.Sprintf("%q is not a metric", clip(s.text)), remedyFor(s.text, "metrics", metricNames()))
		return "", false
	}
	return s.text, true
}

func (metric) schema() object { return object{"enum": metricNames()} }

// published adds the figures of documents in the units of their metrics.
func (x *expansion) published() {
	var ids []string
	for _, sc := range x.plan.Scenarios {
		ids = append(ids, sc.ID)
	}
	for _, e := range x.s.published.V {
		p := e.V
		if p.scenario.V != "" && !slices.Contains(ids, p.scenario.V) {
			if x.opts.Tool == "" {
				x.j.fail(p.scenario.Pos, fmt.Sprintf("no scenario is called %q", p.scenario.V), remedyFor(p.scenario.V, "scenarios", ids))
			}
			continue
		}
		info, known := sample.Describe(sample.Metric(p.metric.V))
		if !known || p.value.V == "" {
			continue // unreadable, and noted
		}
		value, problem, remedy := inUnit(p.value.V, info.Unit)
		if problem != "" {
			x.j.fail(p.value.Pos, problem, remedy)
			continue
		}
		x.plan.Published = append(x.plan.Published, Published{
			Scenario: p.scenario.V, Metric: p.metric.V, Value: value,
			Printed: p.value.V, Source: p.source.V, Note: p.note.V,
		})
	}
}

// inUnit reads a printed figure and returns it in unit; the decimal value is
// converted exactly and rounded once.
func inUnit(text, unit string) (value float64, problem, remedy string) {
	number := strings.TrimLeft(text, "0123456789.")
	printedUnit := strings.TrimSpace(number)
	digits := strings.TrimSuffix(text, number)
	var known []string
	for _, s := range scales[unit] {
		known = append(known, strings.TrimSpace("7.5 "+s.unit))
	}
	remedy = "write the figure with its unit, such as " + enumerate(known)
	r, ok := new(big.Rat).SetString(digits)
	if digits == "" || !ok || strings.HasPrefix(digits, ".") || strings.HasSuffix(digits, ".") {
		return 0, fmt.Sprintf("%q does not start with a number such as 7375.159", clip(text)), remedy
	}
	i := slices.IndexFunc(scales[unit], func(s scale) bool { return s.unit == printedUnit })
	if i < 0 {
		problem = fmt.Sprintf("%q is not a unit of this metric", printedUnit)
		if printedUnit == "" {
			problem = fmt.Sprintf("%q has no unit", clip(text))
		}
		return 0, problem, remedy
	}
	factor, _ := new(big.Rat).SetString(scales[unit][i].factor)
	value, _ = r.Mul(r, factor).Float64()
	if math.IsInf(value, 0) {
		return 0, fmt.Sprintf("%q is too large", clip(text)), remedy
	}
	return value, "", ""
}
