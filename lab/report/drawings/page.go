// Package drawings makes the document of a run's page: the report with the data of its drawings.
package drawings

import (
	"fmt"
	"regexp"
	"strings"

	"windtunnel/lab/report"
	"windtunnel/lab/report/document"
	"windtunnel/lab/report/model"
)

// builder has the data that the functions for the parts of one page share.
type builder struct {
	r      *model.Report
	paints map[string]document.Paint
	kept   kept
}

// mostPairRows is the maximum number of scenarios between pairs of hosts for which the page
// has charts of every trial, time series and paths.
const mostPairRows = 60

// Page returns the document of a run's page. A page omits the time series and per-hop counters
// of some trials of a large run, and then says how many trials have them.
func Page(r *model.Report) (document.Document, error) {
	if r.HostMatrices != nil && len(r.Scenarios) > mostPairRows {
		small := *r
		small.Scenarios, small.Comparisons = nil, nil
		r = &small
	}
	b := &builder{r: r, paints: paints(r), kept: keep(r)}
	d := report.Document(r)
	d.Lead, d.Lines = "", []string{strings.Join(d.Lines, " · ")} // keeps the top of the page short; the lead stands with the figures below
	profiles, flames, err := b.profiles()
	if err != nil {
		return d, fmt.Errorf("draw the profiles of run %s: %w", r.Run.ID, err)
	}
	packed, lacks, err := raw(r, b.kept)
	if err != nil {
		return d, fmt.Errorf("pack the download of run %s: %w", r.Run.ID, err)
	}
	e := &r.Run.Environment
	bars := b.panelGroups()
	d.Page = &document.Page{
		Charts: b.charts(bars), Paints: b.paints, Raw: packed, Flames: flames,
		Version: strings.TrimSpace(e.Version + " " + e.Revision), Left: b.kept.Left, Lacks: lacks, File: fileName(r.Run.ID),
	}
	drawings := b.drawings(bars, d.Page.Charts, profiles)
	for i := range d.Sections {
		d.Sections[i].Data = drawings[d.Sections[i].Drawing]
	}
	return d, nil
}

// Panels returns the first charts of the page: throughput or transactions, CPU, and latency.
func Panels(r *model.Report) []document.Panel {
	b := &builder{r: r, paints: paints(r)}
	if groups := b.panelGroups(); len(groups) > 0 {
		return groups[0].Panels
	}
	return nil
}

// drawings returns the data of each drawing of report.Document, by its name.
func (b *builder) drawings(bars []panelGroup, c document.Charts, p *profileList) map[string]any {
	one := min(len(bars), 1)
	return map[string]any{
		"systems": b.overview(), "first-panels": bars[:one], "cards": b.cards(), "ladders": c.Ladders, "curves": c.Curves,
		"other-panels": bars[one:], "cells": b.cells(), "ratios": ratioAlt(c.Ratios), "trials": c.Trials,
		"profiles": p, "series": allSeries(c.Series), "path": b.topologies(),
	}
}

// ratioAlt describes the chart of ratios; "" without ratios.
func ratioAlt(list []document.Ratios) string {
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
