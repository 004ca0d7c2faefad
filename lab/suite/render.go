package suite

import (
	"cmp"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"windtunnel/internal/phrase"
	"windtunnel/lab/units"
)

// Render prints a plan for readers: first its usual and its longest duration, then
// scenarios, comparisons, hypotheses and published figures.
func Render(p *Plan) string {
	var b strings.Builder
	fmt.Fprintln(&b, headline(p))
	fmt.Fprintf(&b, "%s: %s\n", p.form(), p.Title)
	fmt.Fprintf(&b, "%s × %s on %s\n", phrase.Count(len(p.Scenarios), "scenario"), trials(p), phrase.Count(p.Nodes, "node"))
	if p.Matrix != nil {
		fmt.Fprintln(&b, p.Matrix)
	}
	if until := p.Stop.String(); until != "" {
		fmt.Fprintln(&b, until)
	}
	b.WriteString("\n")
	renderScenarios(&b, p)
	rows(&b, "compared with the baseline:", p.Comparisons, func(c Comparison) string {
		return fmt.Sprintf("%s\t/ %s\t%s", c.Subject, c.Baseline, c.Title)
	})
	rows(&b, "ladders, each step's cost over the one before it:", p.Ladders, func(l Ladder) string {
		return l.String() + "\t" + l.Title
	})
	rows(&b, "hypotheses:", p.Hypotheses, func(h Hypothesis) string {
		return fmt.Sprintf("%s\t%s\tis %s", h.Claim, h.Figure(), h.Printed)
	})
	rows(&b, "published figures:", p.Published, func(f Published) string {
		return fmt.Sprintf("%s\t%s\t%s\t%s", cmp.Or(f.Scenario, "-"), cmp.Or(f.Metric, "-"), f.Printed, f.where())
	})
	return trimLines(b.String())
}

// headline returns the line with the duration of the plan.
func headline(p *Plan) string {
	if p.Cells() == 0 {
		return "no scenario can run on this machine"
	}
	return p.Lasts(1)
}

// Lasts describes the usual duration of a run, its longest duration, and what causes the longest.
// factor is the run's duration relative to the plan's, above 1 for a run with profiled trials.
func (p *Plan) Lasts(factor float64) string {
	usual, cause, repeated := "", "", phrase.Count(p.Repeats(p.Trials), "trial")
	if p.Stop.Precision > 0 {
		usual, cause, repeated = " with the fewest trials", "the precision is not reached, ", "trials"
	}
	duration := func(d time.Duration) string { return units.FormatDuration(factor * float64(d)) }
	return fmt.Sprintf("about %s%s, at worst %s (if %severy set-up takes %s and %s are repeated)",
		duration(p.Estimate()), usual, duration(p.WorstCase()), cause, units.FormatDuration(float64(worstOverhead)), repeated)
}

func trials(p *Plan) string {
	if most := p.Stop.MaxTrials; most > p.Trials {
		return fmt.Sprintf("%d to %d trials", p.Trials, most)
	}
	return phrase.Count(p.Trials, "trial")
}

// String describes in a few words when a run ends. It is "" for a fixed number of
// trials.
func (s Stop) String() string {
	if s.Precision == 0 {
		return ""
	}
	text := "until figures are known to ± " + units.FormatPercent(s.Precision)
	if s.MaxTime > 0 {
		text += "; beyond the fewest trials no block begins after " + units.FormatDuration(float64(s.MaxTime))
	}
	return text
}

// String prints the ids of the steps in order. It adds a name that differs from the
// id: "raw/stream → bridge/stream (the bridge)".
func (l Ladder) String() string {
	steps := make([]string, len(l.Steps))
	for i, id := range l.Steps {
		steps[i] = id
		if l.Names[i] != id && l.Names[i] != Group(id) {
			steps[i] += " (" + l.Names[i] + ")"
		}
	}
	return strings.Join(steps, " → ")
}

// rows prints a list in columns under its heading.
func rows[T any](b *strings.Builder, heading string, list []T, row func(T) string) {
	if len(list) == 0 {
		return
	}
	b.WriteString("\n" + heading + "\n")
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	for _, v := range list {
		fmt.Fprintln(w, "  "+row(v))
	}
	w.Flush()
}

func renderScenarios(b *strings.Builder, p *Plan) {
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SCENARIO\tSYSTEM\tPLACEMENT\tPAIRS\tTOOL\tTRAFFIC\tFABRIC\tTRIAL")
	for _, sc := range p.Scenarios {
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s + %s + %s\n", sc.ID, sc.System, sc.Placement, sc.Pairs, sc.Tool,
			sc.Workload, sc.Fabric, sc.Timing.Warmup, sc.Timing.Duration, sc.Timing.Cooldown)
	}
	w.Flush()
}

// trimLines removes the spaces at the ends of lines. The tabwriter adds them for empty
// last columns.
func trimLines(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}
