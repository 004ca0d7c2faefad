package html

import (
	"fmt"
	"html/template"

	"windtunnel/lab/report/model"
	"windtunnel/lab/sample"
	"windtunnel/lab/stats"
)

// page is what page.html shows, in its order.
type page struct {
	Policy, Title, Description, Line string
	Findings, Notes                  []string
	Cards                            []card
	Validity                         *validity
	Precision                        *precision
	Hypotheses                       []hypothesis
	Ladders                          []ladder
	Trials                           bool
	Profiles                         profiles
	Tables                           []table
	Conditions                       []string
	Elsewhere                        []elsewhere
	Panels                           map[string][]panel // by table
	Cells                            []cellCharts
	Ratios                           bool
	RatioAlt                         string
	Series                           []series
	Topologies                       []topology
	Published                        []model.Beside
	PublishedTables                  []publishedTable
	Rule                             string // how published and measured ratios are held against each other
	PublishedSources                 bool
	Troubles                         []model.Trouble
	Facts, Settings                  []model.Fact
	Method                           []model.Passage
	Repeat                           model.Repeat
	ByHand                           []model.ByHand
	ByHandHint                       string
	Left, Lacks                      string
	File                             string // name of the download
	// What is of these types is written as it is: the page's own parts, and
	// data in a form that needs no escaping. All else the template escapes.
	Data, Library, Script template.JS
	Raw, Flames           template.HTML // base64, which needs no escaping
	Style                 template.CSS
}

// elsewhere are the tables of trials at another distance of the CPUs.
type elsewhere struct {
	Title  string
	Tables []table
}

func (b *builder) elsewhere() (list []elsewhere) {
	for i := range b.r.Elsewhere {
		e := elsewhere{Title: b.r.Elsewhere[i].Title()}
		for _, f := range b.r.Elsewhere[i].Figures() {
			t := b.table(f)
			t.ID = fmt.Sprintf("%s-%d", t.ID, i+1)
			e.Tables = append(e.Tables, t)
		}
		list = append(list, e)
	}
	return list
}

// builder carries what the parts of one page have in common.
type builder struct {
	r      *model.Report
	rows   map[string]*model.Scenario
	paints map[string]paint
	kept   kept
}

func newPage(r *model.Report) (*page, error) {
	b := &builder{r: r, rows: make(map[string]*model.Scenario), paints: paints(r), kept: keep(r)}
	for i := range r.Scenarios {
		b.rows[r.Scenarios[i].ID] = &r.Scenarios[i]
	}
	figures := r.Figures()
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
		Policy: policy, Title: r.Run.Title, Description: r.Run.Description, Line: line(r),
		Findings: r.Findings, Notes: r.Notes, Cards: b.cards(), Panels: make(map[string][]panel),
		Conditions: r.ConditionLines(), Elsewhere: b.elsewhere(),
		Validity: b.validity(), Precision: b.precision(), Hypotheses: b.hypotheses(),
		Ladders: c.Ladders, Trials: c.Trials != nil, Profiles: profiles, Flames: template.HTML(flames),
		Cells: b.cells(), Ratios: len(c.Ratios) > 0, RatioAlt: ratioAlt(c.Ratios), Series: c.Series, Topologies: b.topologies(),
		Published: r.Beside(), PublishedTables: b.publishedTables(), Rule: model.AgreementRule, Troubles: r.Troubles(), Facts: r.Facts(), Settings: r.Settings(),
		Method: r.Method(), Repeat: r.Repeat(), ByHand: r.ByHand(), ByHandHint: model.ByHandHint, Left: b.kept.Left, Lacks: lacks, File: fileName(r.Run.ID),
		Data: data, Library: template.JS(echarts), Script: template.JS(script), Raw: template.HTML(packed), Style: template.CSS(style),
	}
	if p.Title == "" {
		p.Title = r.Run.ID
	}
	for _, f := range figures {
		t := b.table(f)
		p.Tables = append(p.Tables, t)
		for _, panel := range c.Panels {
			if len(panel.ID) > len(t.ID) && panel.ID[:len(t.ID)] == t.ID {
				p.Panels[t.ID] = append(p.Panels[t.ID], panel)
			}
		}
	}
	return p, nil
}

// line says in one line what was run where.
func line(r *model.Report) string {
	text := r.Run.Started.UTC().Format("2 January 2006")
	if r.Run.Short {
		text += " · short form"
	}
	if r.Run.Environment.CPUModel != "" {
		text += " · " + r.Run.Environment.CPUModel
	}
	if r.Run.Environment.Kernel != "" {
		text += " · Linux " + r.Run.Environment.Kernel
	}
	return text + " · " + r.Run.Command()
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

// fileName keeps what a run's id may hold out of the name of a file.
func fileName(id string) string {
	name := []rune(id)
	for i, c := range name {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_') {
			name[i] = '-'
		}
	}
	return "windtunnel-" + string(name[:min(len(name), 80)]) + ".json"
}

// table is a report's table with what the page adds to it.
type table struct {
	model.Figures
	ID      string
	Heading string
	Few     bool // a row has fewer trials than a 95 % interval needs
	Rows    []tableRow
	Every   []everyRow // every metric that was measured, by scenario
}

type tableRow struct {
	ID, Name, Title string
	Paint           paint
	Absent          string
	Cells           []tableCell
}

type tableCell struct {
	model.Cell
	Key  string
	Word bool
}

// everyRow is one metric of every scenario.
type everyRow struct {
	Name, Unit string
	Cells      []model.Cell
}

func (b *builder) table(f model.Figures) table {
	t := table{Figures: f, ID: "streams", Heading: "Throughput and CPU"}
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

// every lists what is in no column of the table, in the order of the reports.
func every(rows []*model.Scenario) []everyRow {
	var list []everyRow
	for _, info := range sample.Known() {
		var medians []float64
		for _, s := range rows {
			if iv := s.Interval(info.Metric); iv != nil {
				medians = append(medians, iv.Median)
			}
		}
		if len(medians) == 0 {
			continue
		}
		scale := model.ScaleOf(info.Metric, medians...)
		e := everyRow{Name: info.Label, Unit: scale.Unit}
		for _, s := range rows {
			var cell model.Cell
			if iv := s.Interval(info.Metric); iv != nil {
				cell.Text, cell.Range = scale.Figure(*iv)
			}
			e.Cells = append(e.Cells, cell)
		}
		list = append(list, e)
	}
	return list
}
