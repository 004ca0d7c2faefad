package suite

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"windtunnel/lab/units"
)

// Render prints a plan for a person: what will run, what is compared, and how
// long it takes.
func Render(p *Plan) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", p.Suite, p.Title)
	fmt.Fprintf(&b, "%s × %s on %s: about %s, at worst %s\n\n",
		plural(len(p.Scenarios), "scenario"), plural(p.Trials, "trial"), plural(p.Nodes, "node"),
		units.FormatDuration(float64(p.Estimate())), units.FormatDuration(float64(p.WorstCase())))
	renderScenarios(&b, p)
	if len(p.Comparisons) > 0 {
		b.WriteString("\ncompared with the baseline:\n")
		w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		for _, c := range p.Comparisons {
			fmt.Fprintf(w, "  %s\t/ %s\t%s\n", c.Subject, c.Baseline, c.Title)
		}
		w.Flush()
	}
	if len(p.Published) > 0 {
		b.WriteString("\npublished figures:\n")
		w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		for _, f := range p.Published {
			fmt.Fprintf(w, "  %s\t%s\t%s\t%s\n", f.Scenario, f.Metric, f.Printed, f.Source)
		}
		w.Flush()
	}
	return trimLines(b.String())
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

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// trimLines takes away the blanks that an aligned but empty last column leaves.
func trimLines(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}
