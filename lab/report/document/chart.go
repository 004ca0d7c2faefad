package document

import (
	"fmt"
	"strings"
)

// Chart is a picture for writers that draw: ratios, or one metric over runs.
type Chart struct {
	ID, Caption string
	Lead        string // how to read the picture
	Alt         string // the content in words
	Ratios      []Ratios
	Trend       *Trend
}

// Ratios has the ratios of one metric.
type Ratios struct {
	Name   string `json:"name"`
	Better int    `json:"better"` // +1 or -1: the direction that is better; 0: none
	Rows   []Dot  `json:"rows"`
}

// Dot is a ratio with its interval.
type Dot struct {
	Subject  string `json:"subject"`
	Baseline string `json:"baseline"`
	Label    string `json:"label"`
	Paint
	Median   float64 `json:"median"`
	Low      float64 `json:"low"`
	High     float64 `json:"high"`
	Distinct bool    `json:"distinct"` // certainly not 1
	Text     string  `json:"text"`
	Mark     Mark    `json:"mark"`
	Noisy    bool    `json:"-"` // too noisy to judge
}

// Paint is the colour of a system. It is lighter if both endpoints are on one node.
type Paint struct {
	Colour int  `json:"colour"` // index of the custom property --s0 … in style.css
	Light  bool `json:"light"`
}

// Class returns the paint as a class of style.css.
func (p Paint) Class() string {
	if p.Light {
		return fmt.Sprintf("s%d light", p.Colour)
	}
	return fmt.Sprintf("s%d", p.Colour)
}

// Mark shows a verdict as a sign and a word. Class is its CSS class, which adds a colour.
type Mark struct {
	Sign  string `json:"sign"`
	Word  string `json:"word"`
	More  string `json:"more,omitempty"` // additional text, such as "p 0.0005"
	Class string `json:"class"`
}

// Text returns the mark as text: "~ no difference shows (detectable: 3.1 %)".
func (m Mark) Text() string {
	text := strings.TrimSpace(m.Sign + " " + m.Word)
	if m.More != "" {
		text += " (" + m.More + ")"
	}
	return text
}

// Trend is one metric over runs, in the unit of the chart.
type Trend struct {
	ID     string       `json:"id"` // of the chart
	Unit   string       `json:"unit"`
	Points []TrendPoint `json:"points"`
	Levels []TrendLevel `json:"levels"`
}

// TrendPoint is one run.
type TrendPoint struct {
	Date   string   `json:"date"`
	Median float64  `json:"median"`
	Low    float64  `json:"low"`
	High   float64  `json:"high"`
	Change string   `json:"change,omitempty"`
	Tip    []string `json:"tip"` // lines of the tooltip
}

// TrendLevel is the level of the runs from From to To; both are indexes of points.
type TrendLevel struct {
	From  int     `json:"from"`
	To    int     `json:"to"`
	Value float64 `json:"value"`
}
