package compare

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"windtunnel/internal/phrase"
)

// grid is a table of the Markdown report.
type grid struct {
	title    string
	heads    []string
	rows     [][]string
	verdicts []Verdict // of each row; nil in tables without figures
}

// WriteTable writes the comparison for a terminal, at most textWidth columns
// wide: the differences of the environments, the tables, the notes, and the gates
// last.
func WriteTable(w io.Writer, c *Comparison) error {
	var b strings.Builder
	for _, line := range c.heading() {
		writeWrapped(&b, "", line)
	}
	for _, g := range c.surroundings() {
		fmt.Fprintf(&b, "\n%s\n", g.title)
		lines := []textLine{{cells: g.heads}}
		for _, row := range g.rows {
			lines = append(lines, textLine{cells: row})
		}
		writeLines(&b, 2, lines)
	}
	writeFigures(&b, "B over A", c.Values)
	writeFigures(&b, "Ratios to the baseline, B over A", c.Ratios)
	fmt.Fprintln(&b)
	for _, note := range c.Notes {
		writeWrapped(&b, "", "• "+note)
	}
	c.writeGates(&b)
	return send(w, b.String(), c)
}

// writeFigures writes a table of figures, with the rows of each scenario below
// its name. Only Markdown and JSON have the uncorrected p-values.
func writeFigures(b *strings.Builder, title string, rows []Row) {
	if len(rows) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s\n", title)
	lines := []textLine{{cells: []string{"METRIC", "A → B", "RATIO [95 %]", "P (HOLM)", "VERDICT"}}}
	above := ""
	for i := range rows {
		r := &rows[i]
		if name := r.name(); name != above {
			lines = append(lines, textLine{heading: name})
			above = name
		}
		lines = append(lines, textLine{cells: []string{r.Metric.Label(), r.sides(), bracketed(r.Ratio), optional(r.Adjusted, probability), r.Says()}, note: r.Note})
	}
	writeLines(b, 4, lines)
}

// WriteMarkdown writes the same for a merge request.
func WriteMarkdown(w io.Writer, c *Comparison) error {
	var b strings.Builder
	for _, line := range c.heading() {
		fmt.Fprintf(&b, "%s\n\n", escape(line))
	}
	for _, g := range c.grids() {
		fmt.Fprintf(&b, "### %s\n\n| %s |\n|%s\n", g.title, strings.Join(g.heads, " | "), strings.Repeat(" --- |", len(g.heads)))
		for _, row := range g.rows {
			for i := range row {
				row[i] = escape(row[i])
			}
			fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
		}
		fmt.Fprintln(&b)
	}
	for _, note := range c.Notes {
		fmt.Fprintf(&b, "- %s\n", escape(note))
	}
	if c.Judgement != nil {
		fmt.Fprintf(&b, "\n### Gates\n\n")
		for _, line := range c.GateLines() {
			fmt.Fprintf(&b, "- %s\n", escape(line))
		}
	}
	return send(w, b.String(), c)
}

// WriteJSON writes the comparison for programs; figures are in SI units.
func WriteJSON(w io.Writer, c *Comparison) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(c); err != nil {
		return fmt.Errorf("write the comparison of %s and %s as JSON: %w", c.A.ID, c.B.ID, err)
	}
	return nil
}

func send(w io.Writer, text string, c *Comparison) error {
	if _, err := io.WriteString(w, text); err != nil {
		return fmt.Errorf("write the comparison of %s and %s: %w", c.A.ID, c.B.ID, err)
	}
	return nil
}

// Line describes the run on one line, without its ID: name, suite, start, valid trials, note.
func (r *RunInfo) Line() string {
	var parts phrase.Lines
	parts.SayIf(r.Name != "", "%s", r.Name)
	parts.Say("suite %s", r.Suite)
	parts.Say("%s", r.Started.UTC().Format(time.DateTime+" UTC"))
	parts.Say("%s", phrase.Count(r.Trials, "valid trial"))
	parts.SayIf(r.Note != "", "%s", r.Note)
	return strings.Join(parts, ", ")
}

// heading returns lines that name the runs.
func (c *Comparison) heading() []string {
	line := func(name string, r RunInfo) string {
		return fmt.Sprintf("run %s: %s, %s", name, r.ID, r.Line())
	}
	var lines []string
	for _, run := range append([]RunInfo{c.A}, c.MoreA...) {
		lines = append(lines, line("A", run))
	}
	for _, run := range append([]RunInfo{c.B}, c.MoreB...) {
		lines = append(lines, line("B", run))
	}
	if len(c.Environment)+len(c.Plan) == 0 {
		lines = append(lines, "Nothing that is recorded of the machine and the plan differs.")
	}
	return lines
}

// grids returns the tables in their order: differences of the environments
// first.
func (c *Comparison) grids() []grid {
	all := c.surroundings()
	for _, g := range []grid{figures("B over A", "A", "B", c.Values), figures("Ratios to the baseline, B over A", "A / BASELINE", "B / BASELINE", c.Ratios)} {
		if len(g.rows) > 0 {
			all = append(all, g)
		}
	}
	return all
}

// surroundings returns the tables of differences between environments and
// plans.
func (c *Comparison) surroundings() []grid {
	var all []grid
	add := func(g grid) {
		if len(g.rows) > 0 {
			all = append(all, g)
		}
	}
	surroundings := grid{title: "What differs around the runs", heads: []string{"WHAT", "A", "B", ""}}
	for _, d := range c.Environment {
		mark := ""
		switch {
		case d.Machine:
			mark = "another machine"
		case d.Trials:
			mark = "different trials count"
		}
		surroundings.rows = append(surroundings.rows, []string{d.Name, orNone(d.A), orNone(d.B), mark})
	}
	for _, d := range c.Plan {
		surroundings.rows = append(surroundings.rows, []string{"plan: " + d.Name, orNone(d.A), orNone(d.B), ""})
	}
	add(surroundings)
	out := grid{title: "Scenarios left out", heads: []string{"SCENARIO", "WHY"}}
	for _, l := range c.LeftOut {
		out.rows = append(out.rows, []string{l.Scenario, l.Reason})
	}
	add(out)
	return all
}

func figures(title, a, b string, rows []Row) grid {
	g := grid{title: title, heads: []string{"SCENARIO", "METRIC", a, b, "RATIO [95 %]", "P", "P (HOLM)", "VERDICT"}}
	for i := range rows {
		r := &rows[i]
		says := r.Says()
		if r.Note != "" {
			says += ": " + r.Note
		}
		g.rows = append(g.rows, []string{r.name(), r.Metric.Label(), r.figure(r.A), r.figure(r.B), bracketed(r.Ratio),
			optional(r.P, probability), optional(r.Adjusted, probability), says})
		g.verdicts = append(g.verdicts, r.Verdict)
	}
	return g
}

func (c *Comparison) writeGates(b *strings.Builder) {
	if c.Judgement == nil {
		return
	}
	fmt.Fprintf(b, "\nGates\n")
	for _, line := range c.GateLines() {
		writeWrapped(b, "", line)
	}
}

// GateLines summarises the gates. The rows that failed come last. It is nil if no gate
// was judged.
func (c *Comparison) GateLines() []string {
	j := c.Judgement
	if j == nil {
		return nil
	}
	lines := []string{fmt.Sprintf("%d passed, %d in doubt, %d not judged, %d failed", j.Count(Passed), j.Count(Doubtful), j.Count(Unjudged), j.Count(Failed))}
	for _, o := range []Outcome{Doubtful, Unjudged, Failed} {
		for _, g := range j.Gates {
			for _, f := range g.Findings {
				if f.Outcome == o {
					lines = append(lines, fmt.Sprintf("%s: gate of line %d (%s): %s", marks[o], g.Line, g.Title, f.Text))
				}
			}
		}
	}
	return lines
}

var marks = map[Outcome]string{Doubtful: "WARNING", Unjudged: "NOT JUDGED", Failed: "FAILED"}

// escape protects characters that have a meaning in Markdown.
func escape(s string) string {
	return strings.NewReplacer(`\`, `\\`, "|", `\|`, "`", "\\`", "*", `\*`, "_", `\_`, "<", "&lt;").Replace(phrase.Printable(s))
}
