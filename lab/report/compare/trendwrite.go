package compare

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"windtunnel/internal/phrase"
	"windtunnel/lab/report/model"
	"windtunnel/lab/units"
)

// WriteTrend writes a trend for a terminal: for each scenario a sparkline and a
// row for each run. Below a run with a new level it lists what else changed. One
// run is a sentence.
func WriteTrend(w io.Writer, t *Trend) error {
	var b strings.Builder
	if t.Runs == 1 {
		t.writeOne(&b)
	} else {
		fmt.Fprintf(&b, "%s, %s\n", phrase.Printable(t.Title()), phrase.Count(t.Runs, "run"))
		for i := range t.Series {
			t.Series[i].write(&b)
		}
		fmt.Fprintln(&b)
	}
	for _, note := range t.Notes {
		fmt.Fprintf(&b, "• %s\n", phrase.Printable(note))
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write the trend of suite %s: %w", t.Suite, err)
	}
	return nil
}

// Title returns the suite with the form of the runs: "suite quick, testbed h1, h2 --short".
func (t *Trend) Title() string {
	title := "suite " + t.Suite
	if form := t.Form.Words(); form != "" {
		title += ", " + form
	}
	return title
}

// writeOne writes the sentence for a trend of one run.
func (t *Trend) writeOne(b *strings.Builder) {
	run := t.Series[0].Points[0]
	writeWrapped(b, "", fmt.Sprintf("%s has one run to show, %s of %s: a trend needs two or more, so run the suite again; `windtunnel report %s` prints this one",
		t.Title(), run.Run, run.Started.UTC().Format(time.DateOnly), run.Run))
}

// WriteTrendJSON writes a trend for programs; figures are in SI units.
func WriteTrendJSON(w io.Writer, t *Trend) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	document := *t
	document.Series, document.Notes = list(t.Series), list(t.Notes)
	if err := e.Encode(document); err != nil {
		return fmt.Errorf("write the trend of suite %s as JSON: %w", t.Suite, err)
	}
	return nil
}

func (s *Series) write(b *strings.Builder) {
	scale := s.Scale()
	fmt.Fprintf(b, "\n%s  %s  %s\n", phrase.Printable(s.Scenario), s.Metric.Label(), Sparkline(s.medians()))
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "  RUN\tDATE\tN\tMEDIAN\t[95 %]\tREVISION\tKERNEL\tCHANGE")
	dates := s.Dates()
	for i, p := range s.Points {
		median, bounds := scale.Figure(p.Figure)
		fmt.Fprintf(w, "  %s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\n", phrase.Printable(p.RunText()), dates[i], p.Figure.N,
			strings.TrimSpace(median+" "+scale.Unit), bounds, phrase.Printable(orNone(short(p.Revision))), phrase.Printable(orNone(p.Kernel)), p.Change.mark())
	}
	w.Flush()
	lines := strings.Split(strings.TrimRight(text.String(), "\n"), "\n")
	fmt.Fprintln(b, lines[0])
	for i, line := range lines[1:] {
		fmt.Fprintln(b, strings.TrimRight(line, " "))
		if c := s.Points[i].Change; c != nil {
			c.write(b, scale)
		}
	}
}

// RunText returns the run's ID, with its name if it has one: "20261121-093015-quick main".
func (p *TrendPoint) RunText() string { return strings.TrimSpace(p.Run + " " + p.Name) }

func (c *Change) mark() string {
	if c == nil {
		return ""
	}
	return fmt.Sprintf("◀ ×%s, p %s", model.Scale{By: 1}.Print(c.Ratio), probability(c.P))
}

// write prints the old and new level, and what else changed with that run.
func (c *Change) write(b *strings.Builder, scale model.Scale) {
	fmt.Fprintf(b, "    level %s → %s", scale.Print(c.Before), scale.Print(c.After))
	if len(c.Environment) == 0 {
		fmt.Fprintln(b, "; nothing that is recorded of the machine changed with it")
		return
	}
	fmt.Fprintln(b, "; with it changed:")
	for _, d := range c.Environment {
		fmt.Fprintf(b, "      %s: %s → %s\n", phrase.Printable(d.Name), phrase.Printable(orNone(d.A)), phrase.Printable(orNone(d.B)))
	}
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

// Sparkline draws values as bars from the smallest to the largest. Equal values
// are bars of middle height. A value that is not finite is a gap.
func Sparkline(values []float64) string {
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
