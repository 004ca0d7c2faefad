package html

import (
	"cmp"
	"fmt"
	"html/template"
	"regexp"
	"strings"

	"windtunnel/internal/phrase"
	"windtunnel/lab/report"
	"windtunnel/lab/report/document"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/sentences"
	"windtunnel/lab/report/tables"
	"windtunnel/lab/report/verdicts"
	"windtunnel/lab/sample"
	"windtunnel/lab/stats"
)

// page is the data of page.html: a document, and what the template needs beside it.
type page struct {
	document.Document
	Sections []section
	Policy   string
	Run      *download // nil for a comparison or a trend
	// The template does not escape values of these types. They are the page's own
	// style sheet and scripts, and data that needs no escaping.
	Data, Library, Script template.JS
	Style                 template.CSS
}

// download has the parts of a run's page after the sections.
type download struct {
	Version     string
	Left, Lacks string        // what the page and the file leave out
	File        string        // name of the file
	Raw, Flames template.HTML // base64, which needs no escaping
}

// newPage returns the page of a document. data is for the script.
func newPage(d document.Document, drawings map[string]any, data any, script string) (*page, error) {
	text, err := encode(data)
	if err != nil {
		return nil, err
	}
	p := &page{Document: d, Policy: policy(script), Data: text, Library: template.JS(echarts), Script: template.JS(script), Style: template.CSS(style)}
	p.Sections, err = pageSections(d.Sections, drawings)
	return p, err
}

// figureGroup has the tables of the report, or of its trials at another CPU distance.
type figureGroup struct {
	Title  string
	Tables []figureTable
}

// elsewhere returns the tables of each other CPU distance.
func (b *builder) elsewhere() (list []figureGroup) {
	for i := range b.r.Elsewhere {
		e := figureGroup{Title: b.r.Elsewhere[i].Title()}
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

// mostPairRows is the maximum number of scenarios between pairs of hosts for which the page
// has charts of every trial, time series and paths.
const mostPairRows = 60

func runPage(r *model.Report) (*page, error) {
	if r.HostMatrices != nil && len(r.Scenarios) > mostPairRows {
		small := *r
		small.Scenarios, small.Comparisons = nil, nil
		r = &small
	}
	b := &builder{r: r, paints: paints(r), kept: keep(r)}
	figures := tables.Of(r)
	c := b.charts(figures)
	profiles, flames, err := b.profiles()
	if err != nil {
		return nil, err
	}
	packed, lacks, err := raw(r, b.kept)
	if err != nil {
		return nil, err
	}
	p, err := newPage(report.Document(r), b.drawings(figures, c, profiles), c, script)
	if err != nil {
		return nil, err
	}
	p.Title, p.Lead, p.Lines = cmp.Or(r.Run.Title, r.Run.ID), "", []string{line(r)}
	e := &r.Run.Environment
	p.Run = &download{
		Version: strings.TrimSpace(e.Version + " " + e.Revision), Left: b.kept.Left, Lacks: lacks, File: fileName(r.Run.ID),
		Raw: template.HTML(packed), Flames: template.HTML(flames),
	}
	return p, nil
}

// drawings returns the data of each drawing of report.Document, by its name. Drawings without data
// are not shown.
func (b *builder) drawings(list []tables.Figures, c charts, p *profileList) map[string]any {
	var all []figureTable
	for _, f := range list {
		t := b.table(f)
		for _, panel := range c.Panels {
			if strings.HasPrefix(panel.ID, t.ID) {
				t.Panels = append(t.Panels, panel)
			}
		}
		all = append(all, t)
	}
	one := min(len(all), 1)
	return map[string]any{
		"findings": sentences.Brief(b.r), "systems": b.overview(), "first-panels": all[:one], "conditions": sentences.Conditions(b.r),
		"cards": b.cards(), "validity": b.validity(), "hypotheses": b.r.Hypotheses, "ladders": c.Ladders, "curves": c.Curves,
		"other-panels": all[one:], "cells": b.cells(), "ratios": ratioAlt(c.Ratios), "trials": c.Trials,
		"profiles": p, "series": allSeries(c.Series), "path": b.topologies(),
		"figures": append([]figureGroup{{Tables: all}}, b.elsewhere()...),
	}
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

// ratioAlt describes the chart of ratios; "" without ratios.
func ratioAlt(list []ratios) string {
	if list == nil {
		return ""
	}
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
	Mark string // of the verdict; the table's legend explains it
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
			r.Cells = append(r.Cells, tableCell{c.Cells[i], c.Key, c.Text, verdicts.Marks[c.Cells[i].Verdict]})
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
