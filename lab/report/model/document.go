package model

import (
	"slices"
	"strings"

	"windtunnel/internal/phrase"
	"windtunnel/lab/report/document"
)

// Document returns the report as its readers see it.
func (r *Report) Document() document.Document {
	d := document.Document{Title: r.Run.Title, Lead: r.Run.Description, Lines: r.lines()}
	d.Add(document.Section{Title: "Findings", Sentences: r.Findings})
	d.Add(r.Matrices()...)
	d.Add(figureSections(r.Figures())...)
	for i := range r.Elsewhere {
		d.Add(document.Section{Title: r.Elsewhere[i].Title(), Sections: figureSections(r.Elsewhere[i].Figures())})
	}
	d.Add(r.TroubleSection(), document.Section{Title: "Conditions", Sentences: r.ConditionLines()})
	for i := range r.Ladders {
		d.Add(r.Ladders[i].section())
	}
	d.Add(
		document.Section{Title: "Hypotheses", Sentences: r.HypothesisLines()},
		r.PublishedSection(),
		document.Section{Title: "Validity", Sentences: r.ValidityLines(), Style: document.Faint},
	)
	d.Add(r.LastSections()...)
	return d
}

// TroubleSection returns the reasons for missing figures.
func (r *Report) TroubleSection() document.Section {
	s := document.Section{Title: "Skipped and failed", Style: document.Alarm}
	for _, t := range r.Troubles() {
		s.Sentences = append(s.Sentences, t.String())
	}
	return s
}

// LastSections returns the notes and the reference sections.
func (r *Report) LastSections() []document.Section {
	environment := document.Section{Title: "Environment", Terms: r.Facts(), Reference: true}
	if settings := r.Settings(); settings != nil {
		environment.Sections = []document.Section{{Title: "Sysctls, offloads, other settings and mitigations", Terms: settings, Reference: true}}
	}
	return []document.Section{
		{Title: "Notes", Sentences: r.Notes, Style: document.Faint},
		environment,
		{Title: "Method", Terms: r.Method(), Reference: true},
		{Title: "To repeat", Code: []document.Code{{Lines: r.Repeat()}}, Reference: true},
		{Title: "To repeat a test by hand", Lead: ByHandHint, Code: r.ByHand(), Reference: true},
	}
}

// lines identifies the run: its ID, name and machine, the note, and the command.
func (r *Report) lines() []string {
	e := &r.Run.Environment
	facts := phrase.Lines{r.Run.ID}
	facts.SayIf(r.Run.Name != "", "%s", r.Run.Name)
	facts.SayIf(e.CPUs > 0, "%s", phrase.Count(e.CPUs, "CPU"))
	facts.SayIf(r.Run.Short, "short form")
	facts.SayIf(e.Kernel != "", "Linux %s", e.Kernel)
	facts.SayIf(r.Run.Status != "", "%s", r.Run.Status)
	lines := phrase.Lines{strings.Join(facts, ", ")}
	lines.SayIf(r.Run.Note != "", "%s", r.Run.Note)
	lines.SayIf(r.Run.Suite != "", "%s", r.Run.Command())
	return lines
}

func figureSections(tables []Figures) (list []document.Section) {
	for _, f := range tables {
		list = append(list, document.Section{Title: f.Title, Tables: f.Table().List(), Notes: f.Legend()})
	}
	return list
}

// Table returns the table as texts.
func (f Figures) Table() document.Table {
	t := document.Table{Columns: document.Words("scenario"), Split: true}
	for _, c := range f.Columns {
		t.Columns = append(t.Columns, document.Column{Name: c.Name, Unit: c.Unit, Words: c.Text, Plain: !c.Ranged})
	}
	for i, name := range f.Names {
		row := t.Add(name)
		if why := f.Rows[i].Absent(); why != "" {
			row.Cells[0].Mark = "(" + why + ")"
		}
		for _, c := range f.Columns {
			cell := c.Cells[i]
			row.Cells = append(row.Cells, document.Cell{Text: cell.Text, Range: cell.Range, Mark: marks[cell.Verdict]})
		}
	}
	return t
}

// section returns the table of the ladder: for each metric a row for each step.
func (l *Ladder) section() document.Section {
	t := document.Table{Columns: append(document.Words("step"), document.Figures("median", "added", "ratio to the step before", "of the last step")...)}
	t.Columns[4].Optional = true
	for _, m := range climbed {
		lines, scale := l.Lines(m)
		if lines == nil {
			continue
		}
		t.Add(strings.TrimSuffix(m.Label()+", "+scale.Unit, ", "))
		for _, line := range lines {
			t.Add(line.Step, line.Figure, line.Added, "", line.Share).Cells[3] = document.Cell{Text: line.Ratio, Range: line.Range, Mark: line.Mark}
		}
	}
	var marks []ratioMark
	for _, s := range l.Steps {
		for _, c := range s.Costs {
			if c.Ratio != nil {
				marks = append(marks, ratioMark{s.Name + ", " + c.Metric.Label(), c.Verdict, c.Detectable, c.Ratio.Median})
			}
		}
	}
	return document.Section{Title: titled("What each step costs", l.Title), Tables: t.List(), Notes: legend(marks)}
}

// PublishedSection returns the figures of public documents beside the measured ones. A terminal
// shows a figure of several tables only once, and omits figures without a ratio, unless the
// whole table has no ratio.
func (r *Report) PublishedSection() document.Section {
	s := document.Section{Title: "Published beside measured", Tables: r.besideTable().List()}
	var signs []string
	for _, a := range Agreements {
		if slices.ContainsFunc(r.Tables, func(t PublishedTable) bool { return len(t.Agreeing(a)) > 0 }) {
			signs = append(signs, a.Sign()+" "+string(a))
		}
	}
	if len(r.Tables) > 0 {
		s.Lead = AgreementRule
		s.Notes = []string{strings.TrimPrefix(strings.Join(signs, "; ")+". Absolute figures belong to their hardware; ratios are to each one's own baseline.", ". ")}
	}
	shown := make(map[string]bool)
	for i := range r.Tables {
		t := &r.Tables[i]
		section, ratios := t.section(), len(t.Ratios()) > 0
		for k, c := range t.Cells() {
			key := strings.Join([]string{c.Scenario, c.Against, c.Metric, c.Printed}, "\x00")
			section.Tables[0].Rows[k].Minor = c.Metric == "" || ratios && c.PublishedRatio == nil || shown[key]
			shown[key] = true
		}
		s.Sections = append(s.Sections, section)
	}
	return s
}

// besideTable returns the published figures that are in no table, with their documents.
func (r *Report) besideTable() document.Table {
	t := document.Table{Columns: slices.Concat(document.Words("scenario", "what"), document.Figures("published", "measured", "ratio published", "ratio measured"), document.Words("source"))}
	for _, b := range r.Beside() {
		source := b.Source
		if b.Note != "" {
			source += " (" + b.Note + ")"
		}
		t.Add(b.Scenario, b.Label(), b.Printed, b.MeasuredText(), b.PublishedRatioText(), b.MeasuredRatioText(), source)
	}
	return t
}
