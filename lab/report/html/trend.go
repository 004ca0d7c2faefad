package html

import (
	"fmt"
	"io"
	"strings"
	"time"

	"windtunnel/internal/phrase"
	"windtunnel/lab/report/compare"
	"windtunnel/lab/report/model"
)

// trendPage is the data of trend.html.
type trendPage struct {
	frame
	Lead   string
	Series []trendSeries
	Notes  []string
}

// trendSeries is one scenario of a trend: its chart and its table.
type trendSeries struct {
	Chart                 string // ID of the chart's element
	Scenario, Label, Unit string
	Alt                   string
	Rows                  []trendRow
}

// trendRow is one run. Changes lists what else changed with a run at which the level
// changed.
type trendRow struct {
	Run, Name, URL   string
	Date             string
	N                int
	Median, Range    string
	Revision, Kernel string
	Change, Level    string
	Changes          []compare.Difference
}

// trendChart is the chart of one scenario, in the unit of the chart.
type trendChart struct {
	ID     string       `json:"id"`
	Unit   string       `json:"unit"`
	Points []trendPoint `json:"points"`
	Levels []trendLevel `json:"levels"`
}

type trendPoint struct {
	Date   string   `json:"date"`
	Median float64  `json:"median"`
	Low    float64  `json:"low"`
	High   float64  `json:"high"`
	Change string   `json:"change,omitempty"`
	Tip    []string `json:"tip"` // lines of the tooltip
}

// trendLevel is the level of the runs from From to To; both are indexes of points.
type trendLevel struct {
	From  int     `json:"from"`
	To    int     `json:"to"`
	Value float64 `json:"value"`
}

// WriteTrend writes a trend: a chart and a table for each scenario.
func (s Site) WriteTrend(w io.Writer, t *compare.Trend) error {
	p, err := s.trend(t)
	if err == nil {
		err = send(w, "trend.html", p)
	}
	if err != nil {
		return fmt.Errorf("write the trend of suite %s as HTML: %w", t.Suite, err)
	}
	return nil
}

func (s Site) trend(t *compare.Trend) (p *trendPage, err error) {
	p = &trendPage{Lead: phrase.Count(t.Runs, "run") + ", the oldest first.", Notes: t.Notes}
	if t.Runs == 1 {
		p.Lead = "There is one run to show. A trend needs two or more: run the suite again."
	}
	var data struct {
		Series []trendChart `json:"series"`
	}
	for i := range t.Series {
		row, chart := s.trendOf(&t.Series[i], fmt.Sprintf("c-trend-%d", i))
		p.Series, data.Series = append(p.Series, row), append(data.Series, chart)
	}
	p.frame, err = s.frame("Trend of "+t.Title(), data)
	return p, err
}

// trendOf returns the table and the chart of one scenario. id is the ID of the chart.
func (s Site) trendOf(x *compare.Series, id string) (trendSeries, trendChart) {
	scale := x.Scale()
	table := trendSeries{Chart: id, Scenario: x.Scenario, Label: x.Metric.Label(), Unit: scale.Unit}
	chart := trendChart{ID: id, Unit: scale.Unit, Levels: levels(x.Points, scale)}
	var said []string
	dates := x.Dates()
	for i := range x.Points {
		point := &x.Points[i]
		median, bounds := scale.Figure(point.Figure)
		row := trendRow{Run: point.Run, Name: point.Name, URL: s.url(point.Run), Date: dates[i], N: point.Figure.N,
			Median: median, Range: bounds, Revision: point.RevisionText(), Kernel: point.Kernel}
		dot := trendPoint{Date: row.Date, Median: digits(point.Figure.Median/scale.By, 5), Low: digits(point.Figure.Low/scale.By, 5), High: digits(point.Figure.High/scale.By, 5),
			Tip: []string{point.RunText(), strings.TrimSpace(strings.Join([]string{median, scale.Unit, bounds}, " ")), point.Started.UTC().Format(time.DateTime + " UTC"), "revision " + row.Revision}}
		if c := point.Change; c != nil {
			row.Change, row.Level, row.Changes = c.Text(), scale.Print(c.Before)+" → "+scale.Print(c.After), c.Environment
			dot.Change = "×" + model.Scale{By: 1}.Print(c.Ratio)
			dot.Tip = append(dot.Tip, "level "+row.Level)
			said = append(said, row.Run+": level "+row.Level)
		}
		table.Rows, chart.Points = append(table.Rows, row), append(chart.Points, dot)
	}
	if len(said) == 0 {
		said = []string{"no change of level"}
	}
	table.Alt = fmt.Sprintf("%s of %s over %s; %s.", table.Label, x.Scenario, phrase.Count(len(x.Points), "run"), strings.Join(said, "; "))
	return table, chart
}

// levels returns the levels before, between and after the changes; none if the level did
// not change.
func levels(points []compare.TrendPoint, scale model.Scale) []trendLevel {
	list := []trendLevel{}
	for i := range points {
		c := points[i].Change
		if c == nil {
			continue
		}
		if len(list) == 0 {
			list = append(list, trendLevel{0, i - 1, digits(c.Before/scale.By, 5)})
		}
		list[len(list)-1].To = i - 1
		list = append(list, trendLevel{i, len(points) - 1, digits(c.After/scale.By, 5)})
	}
	return list
}
