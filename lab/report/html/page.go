package html

import (
	"cmp"
	"fmt"
	"html/template"
	"regexp"
	"slices"
	"strings"

	"windtunnel/internal/phrase"
	"windtunnel/lab/report"
	"windtunnel/lab/report/document"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/published"
	"windtunnel/lab/report/sentences"
	"windtunnel/lab/report/tables"
	"windtunnel/lab/sample"
	"windtunnel/lab/stats"
)

// page is the data of page.html: the report, and values that only the page needs.
type page struct {
	*model.Report
	Policy, Title, Line string
	Links               []document.Link
	Verdict, More       []string // the findings of the first screen, and the others
	Overview            overview
	Cards               []card
	Counts              *validity
	Waterfalls          []ladder
	Trials              bool
	Profiles            profiles
	Tables              []figureTable
	Elsewhere           []elsewhere
	Cells               []cellCharts
	Ratios              bool
	RatioAlt            string
	Series              []series
	RoundTrips          bool // a series has the round trips over time
	Topologies          []topology
	Matrices, Last      []document.Section
	Conditions          []string
	Facts               []document.Term
	Left, Lacks         string
	File                string // name of the download
	// The template does not escape values of these types. They are the page's own
	// style sheet and scripts, and data that needs no escaping.
	Data, Library, Script template.JS
	Raw, Flames           template.HTML // base64, which needs no escaping
	Style                 template.CSS
}

// elsewhere has the tables of trials at another CPU distance.
type elsewhere struct {
	Title  string
	Tables []figureTable
}

func (b *builder) elsewhere() (list []elsewhere) {
	for i := range b.r.Elsewhere {
		e := elsewhere{Title: b.r.Elsewhere[i].Title()}
		for _, f := range tables.OfElsewhere(&b.r.Elsewhere[i]) {
			t := b.table(f)
			t.ID = fmt.Sprintf("%s-%d", t.ID, i+1)
			e.Tables = append(e.Tables, t)
		}
		list = append(list, e)
	}
	return list
}

// builder has the data that the functions for the parts of one page share.
type builder struct {
	r      *model.Report
	paints map[string]paint
	kept   kept
}

// mostVerdict is the largest number of findings on the first screen.
const mostVerdict = 3

// mostPairRows is the maximum number of scenarios between pairs of hosts for which the page
// has charts of every trial, time series and paths.
const mostPairRows = 60

func newPage(r *model.Report) (*page, error) {
	if r.HostMatrices != nil && len(r.Scenarios) > mostPairRows {
		small := *r
		small.Scenarios, small.Comparisons = nil, nil
		r = &small
	}
	b := &builder{r: r, paints: paints(r), kept: keep(r)}
	figures := tables.Of(r)
	c := b.charts(figures)
	data, err := encode(c)
	if err != nil {
		return nil, err
	}
	profiles, flames, err := b.profiles()
	if err != nil {
		return nil, err
	}
	packed, lacks, err := raw(r, b.kept)
	if err != nil {
		return nil, err
	}
	p := &page{
		Report: r, Policy: policy(script), Title: cmp.Or(r.Run.Title, r.Run.ID), Line: line(r),
		Cards: b.cards(), Counts: b.validity(), Waterfalls: c.Ladders, Trials: c.Trials != nil, Profiles: profiles,
		Elsewhere: b.elsewhere(), Overview: b.overview(), Cells: b.cells(), Ratios: len(c.Ratios) > 0, RatioAlt: ratioAlt(c.Ratios),
		Series: c.Series, RoundTrips: slices.ContainsFunc(c.Series, series.exchanged), Topologies: b.topologies(),
		Left: b.kept.Left, Lacks: lacks, File: fileName(r.Run.ID),
		Data: data, Library: template.JS(echarts), Script: template.JS(script), Raw: template.HTML(packed), Flames: template.HTML(flames), Style: template.CSS(style),
	}
	p.Matrices, p.Conditions, p.Facts = report.Matrices(r), sentences.Conditions(r), report.Facts(r)
	var last document.Document
	last.Add(published.Section(r), report.TroubleSection(r))
	last.Add(report.LastSections(r)...)
	p.Last = last.Sections
	if len(r.Findings) > 0 {
		p.Verdict = sentences.Brief(r)
	}
	if len(p.Verdict) > mostVerdict { // the line that opens the others needs room
		p.Verdict, p.More = p.Verdict[:mostVerdict-1], p.Verdict[mostVerdict-1:]
	}
	for _, f := range figures {
		t := b.table(f)
		for _, panel := range c.Panels {
			if strings.HasPrefix(panel.ID, t.ID) {
				t.Panels = append(t.Panels, panel)
			}
		}
		p.Tables = append(p.Tables, t)
	}
	return p, nil
}

// line returns the line below the title: date, CPU, kernel and command.
func line(r *model.Report) string {
	var parts phrase.Lines
	parts.SayIf(r.Run.Name != "", "%s", r.Run.Name)
	parts.SayIf(r.Run.Note != "", "%s", r.Run.Note)
	parts.Say("%s", r.Run.Started.UTC().Format("2 January 2006"))
	parts.SayIf(r.Run.Short, "short form")
	parts.SayIf(r.Run.Environment.CPUModel != "", "%s", r.Run.Environment.CPUModel)
	parts.SayIf(r.Run.Environment.Kernel != "", "Linux %s", r.Run.Environment.Kernel)
	return strings.Join(append(parts, r.Run.Command()), " · ")
}

func ratioAlt(list []ratios) string {
	text := "Ratios to the baseline: "
	for _, g := range list {
		text += g.Name + ": "
		for _, d := range g.Rows {
			text += d.Label + " " + d.Text + " " + d.Mark.Text() + "; "
		}
	}
	return text
}

var noFileName = regexp.MustCompile(`[^a-zA-Z0-9_-]`)

// fileName replaces the characters of a run's ID that are unsafe in a file name.
func fileName(id string) string {
	name := noFileName.ReplaceAllString(id, "-")
	return "windtunnel-" + name[:min(len(name), 80)] + ".json"
}

// figureTable is a table of the report, with data that only the page shows.
type figureTable struct {
	tables.Figures
	ID      string
	Heading string
	Panels  []panel
	Few     bool // a row has fewer trials than a 95 % interval needs
	Rows    []tableRow
	Every   []tables.Column // every metric that was measured, by scenario
}

type tableRow struct {
	ID, Name, Title string
	Paint           paint
	Absent          string
	Cells           []tableCell
}

type tableCell struct {
	tables.Cell
	Key  string
	Word bool
}

func (b *builder) table(f tables.Figures) figureTable {
	t := figureTable{Figures: f, ID: "streams", Heading: "Throughput and CPU"}
	if f.Exchange {
		t.ID, t.Heading = "exchange", "Transactions and latency"
	}
	for i, s := range f.Rows {
		t.Few = t.Few || s.Trials > 0 && s.Trials < stats.MinimumTrials(stats.Level)
		r := tableRow{ID: s.ID, Name: f.Names[i], Title: s.Title, Paint: b.paints[s.ID], Absent: s.Absent()}
		for _, c := range f.Columns {
			r.Cells = append(r.Cells, tableCell{c.Cells[i], c.Key, c.Text})
		}
		t.Rows = append(t.Rows, r)
	}
	t.Every = every(f.Rows)
	return t
}

// every returns a column for each measured metric, in the order of the reports.
func every(rows []*model.Scenario) (list []tables.Column) {
	for _, info := range sample.Known() {
		if _, ok := tables.ScaleOfRows(rows, info.Metric); ok {
			list = append(list, tables.Quantity(info.Metric, "", rows))
		}
	}
	return list
}
