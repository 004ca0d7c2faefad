package published

import (
	"bytes"
	"flag"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"windtunnel/internal/must"
	"windtunnel/internal/phrase"
	"windtunnel/lab/report/document"
	"windtunnel/lab/report/figures"
	"windtunnel/lab/report/markdown"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/report/verdicts"
	"windtunnel/lab/suite"
	"windtunnel/suites"
)

var update = flag.Bool("update", false, "write the pages in docs again, with their measured figures and the present texts")

// A page has figures of its run, and all else is made from them and the suite: the document's
// figures, the ratios, verdicts, causes, notes and the tally. The test reads the measured
// figures of each page, makes the page again and compares.
func TestPagesFollowFromSuiteAndFigures(t *testing.T) {
	for _, name := range []string{"cloud-instances", "contrail-windows", "converged", "opencontrail"} {
		file := "../../../docs/published-" + name + ".md"
		text := must.Get(os.ReadFile(file))(t)
		p := page{text: string(text)}
		yaml := must.Get(suites.Read(name))(t)
		s := must.Get(suite.Parse(name, yaml))(t)
		plan := must.Get(s.Expand(suite.ExpandOptions{}))(t)

		r := p.report(t, plan)
		d := must.Get(Document(r))(t)
		d.Sections[1].Lead = p.source()
		p.keepBeyond(t, plan, r, &d.Sections[1])
		if lead := p.source(); !regexp.MustCompile(`revision [0-9a-f]{7,}`).MatchString(lead) || !strings.Contains(lead, "No figure is adjusted.") && !regexp.MustCompile(`adjusted .*; [0-9]+ of [0-9]+ trials count`).MatchString(lead) {
			t.Errorf("the first paragraph of %s does not state the revision and the number of adjusted trials: %s", file, lead)
		}
		var out bytes.Buffer
		must.Succeed(t, markdown.Write(&out, d))
		if *update {
			must.Succeed(t, os.WriteFile(file, out.Bytes(), 0o644))
		} else if diff := cmp.Diff(strings.Split(p.text, "\n"), strings.Split(out.String(), "\n")); diff != "" {
			t.Errorf("%s: run go test ./lab/report/published -run Pages -update (-page +made again):\n%s", file, diff)
		}
	}
}

// page is the Markdown of a page.
type page struct{ text string }

var escaped = regexp.MustCompile(`\\([^a-zA-Z0-9])`)

// section returns the lines below a heading.
func (p page) section(heading string) (lines []string) {
	_, rest, _ := strings.Cut(p.text, "\n"+heading+"\n")
	for _, line := range strings.Split(rest, "\n") {
		if strings.HasPrefix(line, "#") {
			break
		}
		lines = append(lines, escaped.ReplaceAllString(line, "$1"))
	}
	return lines
}

// rows returns the rows of the last table below a heading: cells by column.
func (p page) rows(heading string) (rows []map[string]string) {
	var columns []string
	for _, line := range p.section(heading) {
		cells := strings.Split(strings.Trim(line, "|"), "|")
		switch {
		case line == "" && strings.Contains(strings.Join(columns, ""), "verdict"):
			return rows
		case line == "":
			columns = nil
		case !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "| ---"):
		case columns == nil:
			columns, rows = cells, nil
		default:
			row := make(map[string]string)
			for i, c := range cells {
				row[strings.TrimSpace(columns[i])] = strings.TrimSpace(c)
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// source returns the paragraph about the run.
func (p page) source() string {
	for _, line := range strings.Split(p.text, "\n") {
		if strings.HasPrefix(line, "Run ") {
			return escaped.ReplaceAllString(line, "$1")
		}
	}
	return ""
}

// keepBeyond copies the table “Beyond the document's tables” from the page into a section, and checks its scenarios and
// baselines. A page can lack this table.
func (p page) keepBeyond(t *testing.T, plan *suite.Plan, r *model.Report, s *document.Section) {
	t.Helper()
	heading := "### " + beyondTitle
	if !strings.Contains(p.text, "\n"+heading+"\n") {
		return
	}
	table := document.Table{Columns: slices.Concat(document.Words("scenario", "what"), document.Figures("measured", "ratio"), document.Words("baseline"))}
	rows := p.rows(heading)
	if len(rows) == 0 {
		t.Errorf("%s: the table “%s” has no rows; write the page again from its run (windtunnel report --format published -o docs)", plan.Suite, beyondTitle)
	}
	for _, row := range rows {
		id, baseline := row["scenario"], row["baseline"]
		if inTable(r, id) || !slices.ContainsFunc(plan.Scenarios, func(sc suite.Scenario) bool { return sc.ID == id }) {
			t.Errorf("%s, %s: scenario %s is in a table of the document too, or not in the suite", plan.Suite, beyondTitle, id)
		}
		if baseline != "" && !slices.ContainsFunc(plan.Comparisons, func(c suite.Comparison) bool { return c.Subject == id && c.Baseline == baseline }) {
			t.Errorf("%s, %s: the suite does not compare %s with %s", plan.Suite, beyondTitle, id, baseline)
		}
		table.Add(row["scenario"], row["what"], row["measured"], row["ratio"], row["baseline"])
	}
	at := slices.IndexFunc(s.Sections, func(s document.Section) bool { return s.Title == "Notes" })
	s.Sections = slices.Insert(s.Sections, at, document.Section{Title: beyondTitle, Lead: beyondLead, Tables: table.List()})
}

// refine sets the bounds of a ratio to values that are printed as on the page, as a ratio and as a
// change: 0.165 and -83 % are 0.1654.
func refine(iv *quantity.Interval, ratio, change string) {
	split := func(text string) []string {
		return regexp.MustCompile(`\s*[\[\],]\s*`).Split(text, 3)
	}
	ratios, changes := split(strings.TrimSuffix(ratio, "]")), split(strings.TrimSuffix(change, "]"))
	for i, v := range []*float64{&iv.Median, &iv.Low, &iv.High} {
		_, fraction, _ := strings.Cut(ratios[i], ".")
		percent, _ := strconv.ParseFloat(strings.Replace(strings.TrimSuffix(changes[i], " %"), "−", "-", 1), 64)
		for _, near := range []float64{*v, *v + 4e-4, *v - 4e-4, 1 + percent/100, 1.000001 + percent/100, 0.999999 + percent/100} {
			if strconv.FormatFloat(near, 'f', len(fraction), 64) == ratios[i] && changeText(near) == changes[i] {
				*v = near
				break
			}
		}
	}
}

var printed = regexp.MustCompile(`^([0-9.]+)[^\[]*(?:\[([0-9.]+), ([0-9.]+)\])?$`)

// interval reads a printed figure with its interval; nil if the text has none.
func interval(t *testing.T, text string, factor float64) *quantity.Interval {
	t.Helper()
	m := printed.FindStringSubmatch(text)
	if m == nil {
		return nil
	}
	value := func(text string) float64 {
		v := must.Get(strconv.ParseFloat(text, 64))(t)
		return v * factor
	}
	iv := quantity.Interval{Median: value(m[1]), N: 11}
	iv.Low, iv.High = value(m[2]), value(m[3])
	return &iv
}

// absence returns the reason of a cell without a figure, before measuredCell divided it.
func absence(text string) string {
	head, reason, found := strings.Cut(strings.TrimSuffix(text, ")"), " (")
	switch {
	case !found:
		return text
	case head == "none":
		return reason
	}
	return head + ": " + reason
}

// reason returns the reason that a line below a table gives for a cell.
func (p page) reason(heading, cell string) string {
	for _, line := range p.section(heading) {
		if cells, reason, _ := strings.Cut(line, ": "); slices.Contains(strings.Split(cells, "; "), cell) {
			return strings.TrimSuffix(reason, ".")
		}
	}
	return ""
}

// read sets what the page has of a cell's run, and the verdict that follows.
func (p page) read(t *testing.T, b *verdicts.Judge, table *model.PublishedTable, c *model.PublishedCell) {
	t.Helper()
	heading := "### " + phrase.Capital(table.Title)
	rows := p.rows(heading)
	at := slices.IndexFunc(rows, func(row map[string]string) bool { return row[table.Corner] == c.Row && row["column"] == c.Column })
	if at < 0 && c.Metric == "" {
		return // the suite has its text
	}
	if at < 0 {
		if c.Printed != derived {
			t.Errorf("%s, %s: no row %s, %s", b.Plan.Suite, table.Title, c.Row, c.Column)
		}
		c.Absent, c.Why = notKept, notKept
		return
	}
	row, measured := rows[at], ""
	for column, text := range row {
		switch {
		case column == "measured ratio" && c.PublishedRatio != nil:
			c.MeasuredRatio = interval(t, text, 1)
		case column == "measured" || strings.HasPrefix(column, "measured ("):
			measured = text
		case strings.HasPrefix(column, "CPU by the tool"):
			c.ByTool = interval(t, text, c.Factor)
		}
	}
	if c.Metric != "" && c.Baseline == "" {
		if c.Measured = interval(t, measured, c.Factor); c.Measured == nil {
			c.Absent = absence(measured)
		}
	}
	if c.Baseline != "" && c.MeasuredRatio != nil {
		refine(c.MeasuredRatio, row["measured ratio"], measured)
	}
	verdict := strings.TrimPrefix(row["verdict"], "– ")
	if judge(b, c); verdict == string(model.NotJudged) && c.Agreement != model.NotJudged {
		c.Agreement, c.Why = model.NotJudged, ""
		c.Cause = p.reason(heading, "– "+c.Row+", "+c.Column)
	} else if c.PublishedRatio != nil && c.MeasuredRatio == nil {
		c.Why = verdict
	}
}

// notKept marks a figure that the page's run had and the page did not show.
const notKept = "not kept from this run"

// report makes a report of the plan with the measured figures of the page.
func (p page) report(t *testing.T, plan *suite.Plan) *model.Report {
	t.Helper()
	r := &model.Report{Run: model.RunInfo{Suite: plan.Suite, Title: plan.Title}}
	b := &verdicts.Judge{Source: verdicts.Source{Plan: *plan}, Cells: figures.Group(*plan, nil)}
	for _, table := range plan.Tables {
		out := model.PublishedTable{PublishedTable: table}
		for i := range plan.Published {
			if f := &plan.Published[i]; f.Table == table.Name {
				c := documented(b, f)
				p.read(t, b, &out, c)
				put(&out, c)
			}
		}
		for _, c := range out.Ratios() {
			if d := perByte(&out, c); d != nil {
				p.read(t, b, &out, d)
				put(&out, d)
			}
		}
		r.Tables = append(r.Tables, out)
	}
	for _, row := range append(p.rows("### "+conclusionsTitle), p.rows("### "+oursTitle)...) {
		h := model.Hypothesis{Judgement: model.Judgement(row["verdict"])}
		h.Claim, h.Why = row["claim"], row["figures"]
		for _, known := range plan.Hypotheses {
			if known.Claim != h.Claim {
				continue
			}
			h.Hypothesis = known
			for _, subject := range known.Subjects {
				if h.Cause == "" && h.Judgement == model.Refuted {
					h.Cause = plan.CauseOf(subject, known.Baseline, known.Metric)
				}
			}
		}
		var cause, reason string
		h.Why, cause, _ = strings.Cut(strings.TrimSuffix(h.Why, " Cause not known."), " Cause: ")
		if h.Subjects == nil { // a hypothesis of the run that the suite no longer has
			h.Cause = cause
		}
		h.Why, reason, _ = strings.Cut(h.Why, " Reason: ")
		for _, subject := range h.Subjects {
			if verdict, why := plan.RulingOf(subject, h.Baseline, h.Metric); verdict != "" && !strings.HasPrefix(h.Why, "There are no figures") {
				h.Judgement, reason = model.Judgement(verdict), why
			}
		}
		if h.Judgement != model.Refuted {
			h.Cause = reason
		}
		r.Hypotheses = append(r.Hypotheses, h)
	}
	r.Notes = slices.Clone(plan.Notes)
	for _, line := range p.section("### Notes") {
		if note, is := strings.CutPrefix(line, "- "); is && !slices.Contains(r.Notes, note) {
			r.Notes = append(r.Notes, note)
		}
	}
	return r
}
