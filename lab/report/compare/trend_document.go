package compare

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"windtunnel/internal/phrase"
	"windtunnel/lab/report/document"
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/units"
)

// Document returns the trend as its readers see it: a chart and a table for each scenario. A
// trend of one run is a sentence.
func (t *Trend) Document() document.Document {
	d := document.Document{Title: "Trend of " + strings.TrimSuffix("suite "+t.Suite+", "+t.Form.Words(), ", ")}
	if t.Runs == 1 {
		run := t.Series[0].Points[0]
		d.Lines = []string{"There is one run to show. A trend needs two or more: run the suite again."}
		d.Add(document.Section{Terms: []document.Term{{Name: "run", Text: fmt.Sprintf("%s, %s; `windtunnel report %s` prints it", run.name(), run.Started.UTC().Format(time.DateOnly), run.Run), Run: run.Run}}})
	} else {
		d.Lines = []string{phrase.Count(t.Runs, "run") + ", the oldest first"}
		for i := range t.Series {
			d.Add(t.Series[i].section(fmt.Sprintf("c-trend-%d", i)))
		}
		d.Sections[0].Chart.Lead = "Each dot is the median of one run, with the 95 % interval of its trials. A dashed red line marks a change of the level; the number above it is the ratio of the new level to the old level. An axis may not start at zero."
	}
	d.Add(document.Section{Title: "Notes", Sentences: t.Notes})
	return d
}

// section returns the chart and the table of one scenario. chart is the ID of the chart.
func (s *Series) section(chart string) document.Section {
	scale, dates := quantity.ScaleOf(s.Metric, s.medians()...), s.dates()
	picture := &document.Trend{ID: chart, Unit: scale.Unit, Levels: s.levels(scale)}
	table := document.Table{Columns: append(document.Words("run", "date"), document.Figures("trials", "median")...)}
	table.Columns[3].Unit = scale.Unit
	table.Columns = append(table.Columns, document.Words("revision", "kernel", "change")...)
	table.Columns[4].Optional, table.Columns[5].Optional = true, true
	var said []string
	for i := range s.Points {
		p := &s.Points[i]
		median, bounds := scale.Figure(p.Figure)
		revision := cmp.Or(short(p.Revision), "—")
		row := table.Add(p.name(), dates[i], fmt.Sprint(p.Figure.N), median, revision, cmp.Or(p.Kernel, "—"), "")
		row.Cells[0].Run, row.Cells[3].Range = p.Run, bounds
		dot := document.TrendPoint{
			Date: dates[i], Median: p.Figure.Median / scale.By, Low: p.Figure.Low / scale.By, High: p.Figure.High / scale.By,
			Tip: []string{p.name(), strings.TrimSpace(median + " " + scale.Unit + " " + bounds), p.Started.UTC().Format(time.DateTime + " UTC"), "revision " + revision},
		}
		if c := p.Change; c != nil {
			level := scale.Print(c.Before) + " → " + scale.Print(c.After)
			row.Alarm, row.Notes = true, c.notes(level)
			row.Cells[6].Text = fmt.Sprintf("◀ ×%s, p %s", quantity.Scale{By: 1}.Print(c.Ratio), probability(c.P))
			dot.Change, dot.Tip = "×"+quantity.Scale{By: 1}.Print(c.Ratio), append(dot.Tip, "level "+level)
			said = append(said, p.Run+": level "+level)
		}
		picture.Points = append(picture.Points, dot)
	}
	if said == nil {
		said = []string{"no change of level"}
	}
	label := s.Metric.Label()
	return document.Section{
		Title: s.Scenario + ": " + label, Sketch: sparkline(s.medians()), Tables: table.List(),
		Chart: &document.Chart{ID: chart, Caption: strings.TrimSuffix(label+", "+scale.Unit, ", "), Trend: picture,
			Alt: fmt.Sprintf("%s of %s over %s; %s.", label, s.Scenario, phrase.Count(len(s.Points), "run"), strings.Join(said, "; "))},
	}
}

// name returns the run's ID, with its name if it has one: "20261121-093015-quick main".
func (p *TrendPoint) name() string { return strings.TrimSpace(p.Run + " " + p.Name) }

// notes says which level changed, and what else changed with that run.
func (c *Change) notes(level string) []string {
	if len(c.Environment) == 0 {
		return []string{"level " + level + "; nothing that is recorded of the machine changed with it"}
	}
	lines := []string{"level " + level + "; with it changed:"}
	for _, d := range c.Environment {
		lines = append(lines, fmt.Sprintf("%s: %s → %s", d.Name, cmp.Or(d.A, "—"), cmp.Or(d.B, "—")))
	}
	return lines
}

// levels returns the levels before, between and after the changes; none if the level did
// not change.
func (s *Series) levels(scale quantity.Scale) []document.TrendLevel {
	list := []document.TrendLevel{}
	for i := range s.Points {
		c := s.Points[i].Change
		if c == nil {
			continue
		}
		if len(list) == 0 {
			list = append(list, document.TrendLevel{To: i - 1, Value: c.Before / scale.By})
		}
		list[len(list)-1].To = i - 1
		list = append(list, document.TrendLevel{From: i, To: len(s.Points) - 1, Value: c.After / scale.By})
	}
	return list
}

// dates returns the start of each run in UTC: its date, or with the time if two runs began on
// one day.
func (s *Series) dates() (list []string) {
	for _, layout := range []string{time.DateOnly, "2006-01-02 15:04", time.DateTime} {
		list = nil
		for i := range s.Points {
			list = append(list, s.Points[i].Started.UTC().Format(layout))
		}
		if n := len(slices.Compact(slices.Sorted(slices.Values(list)))); n == len(list) {
			break
		}
	}
	return list
}

func (s *Series) medians() []float64 {
	list := make([]float64, len(s.Points))
	for i, p := range s.Points {
		list[i] = p.Figure.Median
	}
	return list
}

// short shortens a git revision for readers, and keeps its mark of local
// changes.
func short(revision string) string {
	hash, mark, changed := strings.Cut(revision, "+")
	if len(hash) == 40 {
		hash = hash[:10]
	}
	if changed {
		hash += "+" + mark
	}
	return hash
}

// sparkline draws values as bars from the smallest to the largest. Equal values
// are bars of middle height. A value that is not finite is a gap.
func sparkline(values []float64) string {
	bars := []rune("▁▂▃▄▅▆▇█")
	var good []float64
	for _, v := range values {
		if units.Finite(v) {
			good = append(good, v)
		}
	}
	if len(good) == 0 {
		return strings.Repeat(" ", len(values))
	}
	low, high := slices.Min(good), slices.Max(good)
	var b strings.Builder
	for _, v := range values {
		switch {
		case !units.Finite(v):
			b.WriteByte(' ')
		case high/2 == low/2:
			b.WriteRune(bars[3])
		default:
			// Halves, because the difference of huge values overflows.
			at := (v/2 - low/2) / (high/2 - low/2) * float64(len(bars)-1)
			b.WriteRune(bars[int(at+0.5)])
		}
	}
	return b.String()
}
