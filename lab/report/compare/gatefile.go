package compare

import (
	"slices"
	"strings"

	"windtunnel/internal/lists"
	"windtunnel/lab/suite"
	"windtunnel/lab/units"
)

// MaxGateBytes is the largest size of a gate file.
const MaxGateBytes = suite.MaxGateBytes

// Gates is a gate file that has been read and found right.
type Gates struct {
	List []Gate
	file *suite.GateFile
}

// Gate defines the differences that make a comparison fail.
type Gate suite.Gate

// ParseGates reads a gate file; see suite.ParseGates.
func ParseGates(name string, data []byte) (*Gates, error) {
	file, err := suite.ParseGates(name, data)
	if err != nil {
		return nil, err
	}
	g := &Gates{file: file}
	for _, gate := range file.Gates {
		g.List = append(g.List, Gate(gate))
	}
	return g, nil
}

// Title is the gate in a few words, such as "throughput worse by 3 %".
func (g *Gate) Title() string {
	var names []string
	for _, m := range g.Metrics {
		names = append(names, string(m))
	}
	title := strings.Join(names, ", ") + " worse by " + units.FormatPercent(g.WorseBy)
	if g.WorseBy == 0 {
		title = strings.Join(names, ", ") + " worse at all"
	}
	if g.Of == suite.OfRatio {
		title = "ratio to the baseline of " + title
	}
	if len(g.Scenarios) > 0 {
		patterns := lists.Map(g.Scenarios, func(p suite.Pattern) string { return p.Text })
		title += " in " + strings.Join(patterns, ", ")
	}
	return title
}

// matches reports whether the gate applies to a scenario.
func (g *Gate) matches(id string) bool {
	return len(g.Scenarios) == 0 || slices.ContainsFunc(g.Scenarios, func(p suite.Pattern) bool { return matches(p.Text, id) })
}
