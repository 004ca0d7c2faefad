package rejected

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"windtunnel/lab/report/model"
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/sample"
	"windtunnel/lab/units"
)

// Counts counts failed checks, by check.
type Counts []model.GateCount

// add counts the checks that one attempt failed. It counts each check once.
func (c *Counts) add(gates []sample.Gate) {
	seen := make(map[sample.GateName]bool, len(gates))
	for _, g := range gates {
		i := slices.IndexFunc(*c, func(o model.GateCount) bool { return o.Name == g.Name })
		if i < 0 {
			i, *c = len(*c), append(*c, model.GateCount{Name: g.Name, Worst: g})
		}
		entry := &(*c)[i]
		if !seen[g.Name] {
			entry.Trials++
		}
		if seen[g.Name] = true; beyond(g) > beyond(entry.Worst) {
			entry.Worst = g
		}
	}
}

// ordered sorts the counts: the check that most attempts failed comes first.
func (c Counts) ordered() []model.GateCount {
	slices.SortFunc(c, func(a, b model.GateCount) int {
		return cmp.Or(cmp.Compare(b.Trials, a.Trials), cmp.Compare(a.Name, b.Name))
	})
	return c
}

// beyond returns the distance of a gate's figure from its limit, relative to the limit.
// The limit may be an upper or a lower limit.
func beyond(g sample.Gate) float64 {
	far := math.Abs(g.Value - g.Limit)
	if g.Limit != 0 {
		far /= math.Abs(g.Limit)
	}
	return far
}

// Text prints the check with its count and worst figure: "foreign-cpu 3×, worst 31 %".
func Text(g model.GateCount) string {
	text := string(g.Name)
	if g.Trials > 1 {
		text += fmt.Sprintf(" %d×, worst", g.Trials)
	}
	if figure := gateFigure(g.Worst); figure != "" {
		return text + " " + figure
	}
	return strings.TrimSuffix(text, ", worst")
}

// gateFigure prints the figure that a check measured, "31 %".
func gateFigure(g sample.Gate) string {
	switch {
	case g.Name == sample.CPUMoved && g.Unit == "%" && g.Value == 0:
		return "no slice at one distance"
	case g.Name == sample.CPUMoved && g.Unit == "%":
		return fmt.Sprintf("only %.0f %% of the slices at one distance", g.Value)
	case g.Name == sample.CPUMoved && g.Limit == 0:
		return "not read"
	case g.Unit == "" && g.Value == 0:
		return ""
	case g.Unit == "s":
		return units.FormatDuration(g.Value * 1e9)
	}
	return quantity.ScaleOfUnit(g.Unit, g.Value).Print(g.Value)
}

// Brief describes failed checks in a few words: "foreign CPU 46.2 %, compile".
func Brief(gates []sample.Gate) string {
	var parts []string
	for _, g := range gates {
		text := strings.NewReplacer("-", " ", "cpu", "CPU").Replace(string(g.Name)) + " " + gateFigure(g)
		if g.Culprit != "" {
			text += ", " + g.Culprit
		}
		parts = append(parts, strings.TrimSpace(text))
	}
	return strings.Join(parts, "; ")
}

func gateList(gates []model.GateCount) string {
	var parts []string
	for _, g := range gates {
		parts = append(parts, Text(g))
	}
	return strings.Join(parts, "; ")
}
