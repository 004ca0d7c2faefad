package html

import (
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"regexp"
	"strings"
	"unicode/utf8"

	"windtunnel/internal/phrase"
	"windtunnel/lab/report/document"
)

// SVG writes the charts of bars among the panels, throughput and CPU of each scenario, as a
// picture for light pages. The picture of a run without such figures says that.
func SVG(w io.Writer, title string, panels []document.Panel) error {
	return drawSVG(w, title, panels, false)
}

// DarkSVG is SVG for dark pages.
func DarkSVG(w io.Writer, title string, panels []document.Panel) error {
	return drawSVG(w, title, panels, true)
}

// Sizes of the picture in pixels.
const (
	svgLabels = 190 // width of the labels
	svgArea   = 330 // width of a panel's bars
	svgValue  = 70  // width of the figures beside the bars
	svgStep   = 48  // height of a scenario
	svgTop    = 36  // height of the titles
)

// svg draws a chart.
type svg struct {
	strings.Builder
	colours map[string]string // custom properties of style.css
}

func drawSVG(w io.Writer, title string, panels []document.Panel, dark bool) error {
	s := &svg{colours: colourScheme(dark)}
	x, rows := svgLabels, []document.PanelRow(nil)
	for _, p := range panels {
		if p.Kind == "bars" {
			rows = p.Rows
			s.panel(p, x)
			x += svgArea + svgValue
		}
	}
	if rows == nil {
		x += svgArea
		s.text(8, 14, "start", "soft", 14, "This run has no figures of throughput and CPU.")
	}
	height := svgTop + svgStep*len(rows) + 24
	for i, row := range rows {
		label := row.Label
		if row.Absent != "" {
			label += ": " + row.Absent
		}
		if utf8.RuneCountInString(label) > 28 {
			label = string([]rune(label)[:27]) + "…"
		}
		s.text(svgLabels-8, s.middle(i), "end", "ink", 12, label)
	}
	if _, err := fmt.Fprintf(w, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%[1]d\" height=\"%[2]d\" font-family=\"system-ui, sans-serif\" role=\"img\">\n<title>%s</title>\n%s</svg>\n",
		x, height, escaped(title), s.String()); err != nil {
		return fmt.Errorf("write %q as SVG: %w", title, err)
	}
	return nil
}

// escaped returns a text for XML.
func escaped(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(phrase.Printable(text))) // a Builder returns no error
	return b.String()
}

var property = regexp.MustCompile(`--(\w+): (#[0-9a-f]+);`)

// colourScheme returns the colours of style.css.
func colourScheme(dark bool) map[string]string {
	light, darker, _ := strings.Cut(style, "@media screen and (prefers-color-scheme: dark)")
	list := make(map[string]string)
	text := light
	if dark {
		text += darker
	}
	for _, m := range property.FindAllStringSubmatch(text, -1) {
		list[m[1]] = m[2]
	}
	return list
}

func (s *svg) middle(row int) float64 { return svgTop + svgStep*(float64(row)+0.5) }

func (s *svg) text(x, y float64, anchor, colour string, size int, text string) {
	fmt.Fprintf(s, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" dominant-baseline=\"central\" font-size=\"%d\" fill=\"%s\">%s</text>\n",
		x, y, anchor, size, s.colours[colour], escaped(text))
}

func (s *svg) line(x1, y1, x2, y2 float64, colour string) {
	fmt.Fprintf(s, "<path d=\"M%.1f %.1fL%.1f %.1f\" stroke=\"%s\"/>\n", x1, y1, x2, y2, s.colours[colour])
}

// panel draws the axis and the bars of a panel.
func (s *svg) panel(p document.Panel, left int) {
	end := p.Max
	for _, row := range p.Rows {
		for _, b := range row.Bars {
			if b != nil {
				end = max(end, b.Median/p.By, b.High/p.By)
			}
		}
	}
	step := tick(end)
	end = step * math.Ceil(end/step-1e-9)
	at := func(v float64) float64 { return float64(left) + svgArea*v/end }
	bottom := s.middle(len(p.Rows)) - svgStep/2
	for v := 0.0; v <= end+step/2; v += step {
		s.line(at(v), svgTop-8, at(v), bottom, "line")
		s.text(at(v), bottom+12, "middle", "soft", 12, fmt.Sprintf("%g", math.Round(v*1e6)/1e6))
	}
	title := p.Title + ", " + p.Unit
	if len(p.Sides) == 2 {
		title += ": sender above receiver"
	}
	s.text(float64(left), 14, "start", "soft", 14, title)
	for i, row := range p.Rows {
		for side, b := range row.Bars {
			if b != nil {
				s.bar(b, p.By, at, s.middle(i)+svgStep/5*(2*float64(side)+1-float64(len(row.Bars))), fmt.Sprintf("s%d", row.Colour), side == 1 || row.Light)
			}
		}
	}
}

// tick returns a round step that divides an axis into at most six parts.
func tick(end float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(end/6)))
	for _, f := range []float64{1, 2, 5} {
		if end <= 6*f*power {
			return f * power
		}
	}
	return 10 * power
}

// bar draws a median with its interval and the trials.
func (s *svg) bar(b *document.Bar, by float64, at func(float64) float64, y float64, colour string, pale bool) {
	opacity := "1"
	if pale {
		opacity = "0.28"
	}
	x, low, high := at(b.Median/by), at(b.Low/by), at(b.High/by)
	fmt.Fprintf(s, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"14\" fill=\"%s\" fill-opacity=\"%s\" stroke=\"%[4]s\"/>\n", at(0), y-7, max(x-at(0), 1), s.colours[colour], opacity)
	s.line(low, y, high, y, "ink")
	s.line(low, y-4, low, y+4, "ink")
	s.line(high, y-4, high, y+4, "ink")
	right := max(x, high)
	for i, p := range b.Points {
		_, place := math.Modf(float64(i) * 0.618034)
		right = max(right, at(p[1]/by))
		fmt.Fprintf(s, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2\" fill=\"%s\" stroke=\"%s\"/>\n", at(p[1]/by), y+10*(place-0.5), s.colours["ground"], s.colours[colour])
	}
	s.text(right+7, y, "start", "ink", 12, b.Text)
}
