package published

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"windtunnel/internal/phrase"
	"windtunnel/lab/report/document"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/rejected"
	"windtunnel/lab/report/sentences"
	"windtunnel/lab/sample"
)

// Section returns the figures of public documents beside the measured ones. A terminal
// shows a figure of several tables only once, and omits figures without a ratio, unless the
// whole table has no ratio.
func Section(r *model.Report) document.Section {
	s := document.Section{Title: "Published beside measured", Tables: besideTable(r).List()}
	var signs []string
	for _, a := range model.Agreements {
		if slices.ContainsFunc(r.Tables, func(t model.PublishedTable) bool { return len(t.Agreeing(a)) > 0 }) {
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
		section, ratios := tableSection(t), len(t.Ratios()) > 0
		for k, c := range t.Cells() {
			key := strings.Join([]string{c.Scenario, c.Against, c.Metric, c.Printed}, "\x00")
			section.Tables[0].Rows[k].Minor = c.Metric == "" || ratios && c.PublishedRatio == nil || shown[key]
			shown[key] = true
		}
		s.Sections = append(s.Sections, section)
	}
	return s
}

// tableSection returns one row for each figure of the table: published and measured, each with its
// ratio to the baseline, and the verdict. If the tool has CPU figures of its own, they have a
// separate column.
func tableSection(t *model.PublishedTable) document.Section {
	measured, notes := document.Figures("measured"), append([]string{"Source: " + t.Source + "."}, Notes(t)...)
	if slices.ContainsFunc(t.Cells(), func(c *model.PublishedCell) bool { return c.ByTool != nil }) {
		measured = document.Figures("measured (CPU: by the lab's meter)", "CPU by the tool itself")
		measured[1].Optional = true
		notes = append(notes, ByToolNote)
	}
	if slices.ContainsFunc(t.Cells(), func(c *model.PublishedCell) bool { return c.Printed == derived }) {
		notes = append(notes, derivedNote)
	}
	table := document.Table{Columns: slices.Concat(
		document.Words(cmp.Or(t.Corner, "row"), "column", "scenario"), document.Figures("published"), measured,
		document.Figures("published ratio", "measured ratio"), document.Words("verdict"))}
	table.Columns[2].Optional = true
	for _, c := range t.Cells() {
		row := table.Add(c.Row, c.Column, c.Scenario, c.Printed)
		row.Cells = append(row.Cells, measuredCell(c))
		if len(measured) > 1 {
			row.Cells = append(row.Cells, document.Cell{Text: ByToolText(c)})
		}
		row.Cells = append(row.Cells, document.Cell{Text: PublishedRatioText(c)}, document.Cell{Text: MeasuredRatioText(c)},
			document.Cell{Text: cmp.Or(c.Agreement.Sign(), "–"), Range: Verdict(c), Tone: tone(c.Agreement)})
	}
	return document.Section{Title: phrase.Capital(t.Title), Tables: table.List(), Notes: append(notes, Causes(t)...)}
}

// measuredCell returns the measured figure with its interval. Without a figure it has a word and
// the reason in brackets, or "none" if no scenario measures the figure.
func measuredCell(c *model.PublishedCell) document.Cell {
	text := MeasuredText(c)
	if c.Metric == "" {
		return document.Cell{Text: "none"} // the note has the reason
	}
	if text == "" || text != c.Absent {
		return document.Cell{Text: text, Range: MeasuredRange(c)}
	}
	head, rest, _ := strings.Cut(text, ":")
	if len([]rune(head)) > 21 { // "not in the short form"
		head, rest = "none", text
	}
	cell := document.Cell{Text: head}
	if rest != "" {
		cell.Range = "(" + strings.TrimSpace(rest) + ")"
	}
	return cell
}

const publishedLegend = "The command “windtunnel report --format published” wrote this page. " +
	"The page “Published experiments” names the documents, shows their set-ups, explains the verdicts, and lists what differs from the documents. " +
	"The first table below each title has the document's rows and columns, with the measured median in brackets and the sign of the verdict. " +
	"Elsewhere brackets hold 95 % intervals. A figure without a ratio (–) is a baseline, or the document has no baseline for it. Such a figure depends on the hardware."

const (
	conclusionsTitle = "Conclusions of the document"
	oursTitle        = "Claims that are ours"
)

// Document returns a page that compares public documents with reports of suites that repeat the
// documents' measurements. The page has the number of each verdict. For each report it has the
// documents' tables beside the measured figures, and the hypotheses. Every report must have a table.
func Document(reports ...*model.Report) (document.Document, error) {
	name := "results"
	if len(reports) == 1 {
		name = reports[0].Run.Suite
	}
	d := document.Document{Title: "Published experiments: " + name, Links: []document.Link{{Text: "Published experiments", URL: "published.md"}}, Lines: []string{publishedLegend}}
	d.Add(document.Section{Title: "All verdicts", Lead: "The suite itself sets the figures that are marked “by construction”, so they do not test the document. The table counts each figure once, also if it stands in several tables or was measured at both ends of a stream.", Tables: counts(reports).List()})
	for _, r := range reports {
		if len(r.Tables) == 0 {
			return d, fmt.Errorf("run %s of suite %s has no table of a document; name runs of suites that have tables", r.Run.ID, r.Run.Suite)
		}
		s := document.Section{Title: r.Run.Suite + ": " + r.Run.Title, Lead: publishedSource(r)}
		for i := range r.Tables {
			section := tableSection(&r.Tables[i])
			section.Tables = slices.Insert(section.Tables, 0, shape(&r.Tables[i]))
			s.Sections = append(s.Sections, section)
		}
		s.Sections = append(s.Sections, claims(conclusionsTitle, r.Hypotheses, false)...)
		s.Sections = append(s.Sections, claims(oursTitle, r.Hypotheses, true)...)
		if others := beyond(r); len(others.Rows) > 0 {
			s.Sections = append(s.Sections, document.Section{Title: beyondTitle, Lead: beyondLead, Tables: others.List()})
		}
		if len(r.Notes) > 0 {
			s.Sections = append(s.Sections, document.Section{Title: "Notes", Sentences: r.Notes})
		}
		d.Add(s)
	}
	return d, nil
}

// claims returns a section with the document's conclusions, or, if ours is set, with the claims that the document does not make. It
// returns no section if there are no such claims.
func claims(title string, all []model.Hypothesis, ours bool) []document.Section {
	t := document.Table{Columns: document.Words("verdict", "claim", "figures")}
	for _, h := range all {
		if h.Ours() == ours {
			t.Add(string(h.Judgement), h.Claim, strings.TrimSpace(h.Why+" "+h.CauseText()))
		}
	}
	if len(t.Rows) == 0 {
		return nil
	}
	return []document.Section{{Title: title, Tables: t.List()}}
}

// counts counts the verdicts on the figures and the document's conclusions of each report. A figure counts once,
// also if it is in several tables, or is the throughput of both ends of a stream.
func counts(reports []*model.Report) document.Table {
	t := document.Table{Columns: document.Words("suite")}
	for _, a := range model.Agreements {
		t.Columns = append(t.Columns, document.Column{Name: a.Sign() + " " + string(a)})
	}
	t.Columns = append(t.Columns, document.Column{Name: "no verdict"})
	for _, j := range model.Judgements {
		t.Columns = append(t.Columns, document.Column{Name: "conclusions: " + string(j)})
	}
	for _, r := range reports {
		row := []string{r.Run.Suite}
		count := make(map[model.Agreement]int)
		for _, c := range once(r) {
			count[c.Agreement]++
		}
		for _, a := range append(model.Agreements, "") {
			row = append(row, strconv.Itoa(count[a]))
		}
		for _, j := range model.Judgements {
			n := 0
			for _, h := range r.Hypotheses {
				if h.Judgement == j && !h.Ours() {
					n++
				}
			}
			row = append(row, strconv.Itoa(n))
		}
		t.Add(row...)
	}
	return t
}

// once lists the cells with a published ratio, without cells that repeat a measured ratio. A published
// ratio that the document's own figures contradict is listed separately.
func once(r *model.Report) (list []*model.PublishedCell) {
	seen := make(map[string]bool)
	for i := range r.Tables {
		for _, c := range r.Tables[i].Ratios() {
			metric := c.Metric
			if throughput(metric) {
				metric = string(sample.Throughput)
			}
			key := strings.Join([]string{c.Scenario, c.Against, metric, c.Doubt}, "\x00")
			if !seen[key] {
				list = append(list, c)
			}
			seen[key] = true
		}
	}
	return list
}

// publishedSource names the run of a report, with its date and number of trials, and the
// facts that its figures depend on.
func publishedSource(r *model.Report) string {
	e := r.Run.Environment
	text := fmt.Sprintf("Run %s of %s: %s. %s %s %s, %s, Linux %s", r.Run.ID, r.Run.Started.UTC().Format("2 January 2006"), r.Run.Command(),
		trialsEach(r), rejected.Line(r.Validity), e.CPUModel, phrase.Count(e.CPUs, "CPU"), e.Kernel)
	text += ", revision " + cmp.Or(e.Revision, "not recorded") + "."
	if state := sentences.State(&r.Conditions); state != "" {
		text += " " + state
	}
	switch {
	case !r.Conditions.Adjusted:
		text += " No figure is adjusted."
	case r.Run.Options.Lenient: // other trials count in spite of their conditions too
		text += fmt.Sprintf(" The figures of all %s are adjusted to one CPU distance and no steal.", phrase.Count(r.Validity.Valid, "trial"))
	default:
		text += fmt.Sprintf(" The figures are adjusted to one CPU distance and no steal; %d of %s count only because of that.", r.Validity.Warned, phrase.Count(r.Validity.Valid, "trial"))
	}
	return text
}

// shape returns the document's table in the document's rows and columns, with the measured figures
// and the signs of the verdicts.
func shape(t *model.PublishedTable) document.Table {
	printed := func(c *model.PublishedCell) bool { return c != nil && c.Printed != derived }
	table := document.Table{Columns: document.Words(cmp.Or(t.Corner, "row"))}
	var shown []int
	for i, name := range t.Columns {
		if slices.ContainsFunc(t.Rows, func(r model.PublishedRow) bool { return printed(r.Cells[i]) }) {
			shown, table.Columns = append(shown, i), append(table.Columns, document.Column{Name: name})
		}
	}
	for _, r := range t.Rows {
		if !slices.ContainsFunc(r.Cells, printed) {
			continue
		}
		row := table.Add(r.Name)
		for _, i := range shown {
			var cell document.Cell
			if c := r.Cells[i]; printed(c) {
				cell.Text, cell.Range, cell.Mark = c.Printed, "(–)", c.Agreement.Sign()
				if c.Measured != nil || c.Baseline != "" && c.MeasuredRatio != nil {
					cell.Range = "(" + MeasuredText(c) + ")"
				}
			}
			row.Cells = append(row.Cells, cell)
		}
	}
	return table
}

// trialsEach states the number of scenarios with figures, and of their trials that count:
// "Figures of 24 scenarios, each of 9 to 11 trials."
func trialsEach(r *model.Report) string {
	var counts []int
	for i := range r.Scenarios {
		if n := r.Scenarios[i].Trials; n > 0 {
			counts = append(counts, n)
		}
	}
	if len(counts) == 0 {
		return "No scenario has figures."
	}
	least, most := slices.Min(counts), slices.Max(counts)
	each := phrase.Count(most, "trial")
	if least < most {
		each = fmt.Sprintf("%d to %s", least, each)
	}
	return fmt.Sprintf("Figures of %s, each of %s.", phrase.Count(len(counts), "scenario"), each)
}
