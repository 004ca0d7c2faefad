package html

import (
	"html/template"
	"regexp"
	"strings"

	"windtunnel/lab/report"
	"windtunnel/lab/report/document"
	"windtunnel/lab/report/model"
)

// page is the data of page.html: a document, and what the template needs beside it.
type page struct {
	document.Document
	Sections []section
	Policy   string
	paints   map[string]paint
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

// chip returns the class of the mark with a scenario's colour; "" for none.
func (p page) chip(scenario string) string {
	if paint, ok := p.paints[scenario]; ok {
		return paint.Class()
	}
	return ""
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
	bars := b.panelGroups()
	c := b.charts(bars)
	profiles, flames, err := b.profiles()
	if err != nil {
		return nil, err
	}
	packed, lacks, err := raw(r, b.kept)
	if err != nil {
		return nil, err
	}
	p, err := newPage(report.Document(r), b.drawings(bars, c, profiles), c, script)
	if err != nil {
		return nil, err
	}
	p.paints = b.paints
	p.Lead, p.Lines = "", []string{strings.Join(p.Lines, " · ")} // the first screen is short; the figures have the lead
	e := &r.Run.Environment
	p.Run = &download{
		Version: strings.TrimSpace(e.Version + " " + e.Revision), Left: b.kept.Left, Lacks: lacks, File: fileName(r.Run.ID),
		Raw: template.HTML(packed), Flames: template.HTML(flames),
	}
	return p, nil
}

// drawings returns the data of each drawing of report.Document, by its name.
func (b *builder) drawings(bars []panelGroup, c charts, p *profileList) map[string]any {
	one := min(len(bars), 1)
	return map[string]any{
		"systems": b.overview(), "first-panels": bars[:one], "cards": b.cards(), "ladders": c.Ladders, "curves": c.Curves,
		"other-panels": bars[one:], "cells": b.cells(), "ratios": ratioAlt(c.Ratios), "trials": c.Trials,
		"profiles": p, "series": allSeries(c.Series), "path": b.topologies(),
	}
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
