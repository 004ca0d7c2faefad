package drawings

import (
	"fmt"
	"math"
	"strings"

	"windtunnel/lab/report/document"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// cellCharts has the two charts of one system.
type cellCharts struct {
	System string
	Charts []document.CellChart
	Left   int // number of scenarios without a throughput, which the charts omit
}

// cells makes the charts of every system with two or more settings, each measured in
// one direction and in both. A setting is the group of a scenario: the part of its ID
// before "/".
func (b *builder) cells() []cellCharts {
	var list []cellCharts
	seen := map[string]bool{}
	for i := range b.r.Scenarios {
		system := b.r.Scenarios[i].System
		if seen[system] {
			continue
		}
		seen[system] = true
		half, full, left := b.duplexes(system)
		if commonSettings(half, full) < 2 {
			continue
		}
		c := cellCharts{System: system, Left: left}
		scale, most := cellScale(append(half[:len(half):len(half)], full...))
		for _, d := range []struct {
			key, title string
			rows       []*model.Scenario
		}{
			{"half", "One direction (half duplex)", half},
			{"full", "Both directions at once (full duplex)", full},
		} {
			chart := document.CellChart{ID: fmt.Sprintf("cells-%d-%s", len(list), d.key), Title: d.title, Unit: scale.Unit, By: scale.By, Max: most}
			b.fill(&chart, d.rows, scale)
			c.Charts = append(c.Charts, chart)
		}
		list = append(list, c)
	}
	return list
}

// duplexes returns a system's stream scenarios in one direction (half) and in both (full).
// Streams of a limited rate are left out. left is the number of stream scenarios without a throughput, which are in neither list.
func (b *builder) duplexes(system string) (half, full []*model.Scenario, left int) {
	for i := range b.r.Scenarios {
		s := &b.r.Scenarios[i]
		switch {
		case s.Workload.Rate > 0: // the workload limits it, not the setting
		case s.System != system || !s.Workload.Kind.Stream():
		case s.Throughput == nil:
			left++
		case s.Workload.Direction == suite.Both:
			full = append(full, s)
		default:
			half = append(half, s)
		}
	}
	return half, full, left
}

// commonSettings counts the settings that are in both lists.
func commonSettings(half, full []*model.Scenario) int {
	inHalf, both := map[string]bool{}, map[string]bool{}
	for _, s := range half {
		inHalf[suite.Group(s.ID)] = true
	}
	for _, s := range full {
		if g := suite.Group(s.ID); inHalf[g] {
			both[g] = true
		}
	}
	return len(both)
}

// cellScale returns the unit for a system's throughputs, and the end of the axis: a round
// figure not below the upper end of any interval.
func cellScale(rows []*model.Scenario) (quantity.Scale, float64) {
	var medians []float64
	top := 0.0
	for _, s := range rows {
		medians = append(medians, s.Throughput.Median)
		top = max(top, s.Throughput.Median, s.Throughput.High)
	}
	scale := quantity.ScaleOf(sample.Throughput, medians...)
	if top <= 0 {
		return scale, 1
	}
	top /= scale.By
	step := math.Pow(10, math.Floor(math.Log10(top))) / 2
	return scale, math.Ceil(top/step) * step
}

func (b *builder) fill(c *document.CellChart, rows []*model.Scenario, scale quantity.Scale) {
	groups := map[string]int{}
	for _, s := range rows {
		groups[suite.Group(s.ID)]++
	}
	var said []string
	for _, s := range rows {
		r := document.CellRow{ID: s.ID, Label: suite.Group(s.ID), Paint: b.paints[s.ID], Bar: barOf(s.Throughput, scale)}
		if groups[r.Label] > 1 {
			r.Label = s.ID
		}
		text := r.Label + " " + r.Bar.Text
		for i, iv := range []*quantity.Interval{s.SenderCPU, s.ReceiverCPU} {
			if iv != nil {
				r.CPU[i] = barOf(iv, quantity.Scale{Unit: "%", By: 1})
				text += fmt.Sprintf(", CPU of the %s %s %%", []string{"sender", "receiver"}[i], r.CPU[i].Text)
			}
		}
		said = append(said, text)
		c.Rows = append(c.Rows, r)
	}
	c.Alt = fmt.Sprintf("%s: throughput in %s with CPU: %s. The tables below have all figures.", c.Title, c.Unit, strings.Join(said, "; "))
}

func barOf(iv *quantity.Interval, scale quantity.Scale) *document.Bar {
	text, _ := scale.Figure(*iv)
	return &document.Bar{Median: iv.Median, Low: iv.Low, High: iv.High, Text: text}
}
