package compare

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"windtunnel/internal/phrase"
	"windtunnel/lab/report/document"
	"windtunnel/lab/sample"
)

// Document returns the comparison as its readers see it: the runs, the differences of their
// environments, the tables, the notes, and the gates last.
func (c *Comparison) Document() document.Document {
	d := document.Document{Title: "Comparison of suite " + c.B.Suite}
	var runs document.Section
	for i, side := range [][]RunInfo{append([]RunInfo{c.A}, c.MoreA...), append([]RunInfo{c.B}, c.MoreB...)} {
		for _, r := range side {
			runs.Terms = append(runs.Terms, document.Term{Name: "run " + string(rune('A'+i)), Text: r.ID + ", " + r.line(), Run: r.ID})
		}
	}
	if len(c.Environment)+len(c.Plan) == 0 {
		runs.Notes = []string{"Nothing that is recorded of the machine and the plan differs."}
	}
	d.Add(runs)
	around := document.Table{Columns: document.Words("what", "A", "B", "")}
	for _, x := range c.Environment {
		mark := ""
		switch {
		case x.Machine:
			mark = "another machine"
		case x.Trials:
			mark = "different trials count"
		}
		around.Add(x.Name, cmp.Or(x.A, "—"), cmp.Or(x.B, "—"), mark)
	}
	for _, x := range c.Plan {
		around.Add("plan: "+x.Name, cmp.Or(x.A, "—"), cmp.Or(x.B, "—"), "")
	}
	out := document.Table{Columns: document.Words("scenario", "why")}
	for _, l := range c.LeftOut {
		out.Add(l.Scenario, l.Reason)
	}
	values := figures("B over A", "", c.Values)
	values.Chart = ratioChart(c.Values)
	d.Add(
		document.Section{Title: "What differs around the runs", Tables: around.List()},
		document.Section{Title: "Scenarios left out", Tables: out.List()},
		values, figures("Ratios to the baseline, B over A", " / baseline", c.Ratios),
		document.Section{Title: "Notes", Sentences: c.Notes},
		document.Section{Title: "Gates", Sentences: c.gateLines()},
	)
	return d
}

// figures returns a table of figures, with the rows of each scenario below its name.
func figures(title, over string, rows []Row) document.Section {
	t := document.Table{Columns: append(document.Words("metric"), document.Figures("A"+over, "B"+over, "ratio [95 %]", "p", "p (Holm)")...)}
	t.Columns[4].Optional = true
	t.Columns = append(t.Columns, document.Words("verdict")...)
	above := ""
	for i := range rows {
		r := &rows[i]
		if name := r.name(); name != above {
			t.Add(name)
			above = name
		}
		row := t.Add(strings.TrimSuffix(r.Metric.Label()+", "+r.scale().Unit, ", "), r.figure(r.A), r.figure(r.B), "", optional(r.P, probability), optional(r.Adjusted, probability), r.says())
		row.Cells[3].Text, row.Cells[3].Range, _ = strings.Cut(bracketed(r.Ratio), " ")
		if r.Verdict == Better || r.Verdict == Worse {
			row.Cells[6].Tone = string(r.Verdict)
		}
		if r.Note != "" {
			row.Notes = []string{r.Note}
		}
	}
	return document.Section{Title: title, Tables: t.List()}
}

// ratioChart returns the ratios B / A by metric; nil if there are none.
func ratioChart(rows []Row) *document.Chart {
	c := &document.Chart{ID: "c-ratios", Alt: "Ratios of B to A: ",
		Lead: "Each dot is the ratio of B to A; 1 means no difference. The whisker is its 95 % interval, from the spread between runs. The shaded side is worse. A hollow dot is uncertain."}
	for _, info := range sample.Known() {
		g := document.Ratios{Name: info.Label, Better: info.Better}
		for i := range rows {
			r := &rows[i]
			if r.Metric != info.Metric || r.Ratio == nil {
				continue
			}
			sure := r.Verdict == Better || r.Verdict == Worse || r.Verdict == Differs
			g.Rows = append(g.Rows, document.Dot{
				Subject: "B", Baseline: "A", Label: r.Scenario, Paint: document.Paint{Colour: 1}, Distinct: sure,
				Median: r.Ratio.Median, Low: r.Ratio.Low, High: r.Ratio.High, Text: bracketed(r.Ratio), Mark: document.Mark{Word: r.says()},
			})
			c.Alt += fmt.Sprintf("%s of %s %s, %s; ", info.Label, r.Scenario, bracketed(r.Ratio), r.says())
		}
		if len(g.Rows) > 0 {
			c.Ratios = append(c.Ratios, g)
		}
	}
	if c.Ratios == nil {
		return nil
	}
	return c
}

// line describes the run on one line, without its ID: name, suite, start, valid trials, note.
func (r *RunInfo) line() string {
	var parts phrase.Lines
	parts.SayIf(r.Name != "", "%s", r.Name)
	parts.Say("suite %s", r.Suite)
	parts.Say("%s", r.Started.UTC().Format(time.DateTime+" UTC"))
	parts.Say("%s", phrase.Count(r.Trials, "valid trial"))
	parts.SayIf(r.Note != "", "%s", r.Note)
	return strings.Join(parts, ", ")
}

// gateLines summarises the gates. The rows that failed come last. It is nil if no gate
// was judged.
func (c *Comparison) gateLines() []string {
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
