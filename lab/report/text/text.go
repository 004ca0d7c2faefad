// Package text writes a report for a terminal.
package text

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/charmbracelet/lipgloss"
	"github.com/charmbracelet/lipgloss/table"
	"github.com/muesli/termenv"

	"windtunnel/lab/phrase"
	"windtunnel/lab/report/model"
)

// Options says what the terminal can show.
type Options struct {
	Width int  // columns; less than 40 counts as 40, 0 as 100
	Color bool // whether escape sequences may be written; the caller honours NO_COLOR
}

// Write writes the report for a terminal: a table of the streams, one of
// request/response, why rows are empty, the findings, what each step of a ladder
// costs, the hypotheses, and the published figures beside the measured.
// On a narrow terminal wide tables are split.
func Write(w io.Writer, r *model.Report, opts Options) error {
	if opts.Width == 0 {
		opts.Width = 100
	}
	t := terminal{width: max(opts.Width, 40), style: palette(opts.Color)}
	t.heading(r)
	for _, f := range r.Figures() {
		t.figures(f)
	}
	for i := range r.Elsewhere {
		t.out.WriteByte('\n')
		t.paragraph(t.style.plain, "", r.Elsewhere[i].Title())
		for _, f := range r.Elsewhere[i].Figures() {
			t.figures(f)
		}
	}
	t.troubles(r)
	t.bullets("Findings", r.Findings, t.style.plain)
	t.bullets("Conditions", r.ConditionLines(), t.style.plain)
	for _, l := range r.LadderTables() {
		t.ladder(l)
	}
	t.bullets("Hypotheses", r.HypothesisLines(), t.style.plain)
	t.publishedTables(r.Tables)
	t.published(r)
	t.bullets("Validity", r.ValidityLines(), t.style.faint)
	t.bullets("Notes", r.Notes, t.style.faint)
	if _, err := w.Write(t.out.Bytes()); err != nil {
		return fmt.Errorf("write run %s as a table: %w", r.Run.ID, err)
	}
	return nil
}

// terminal collects what is written.
type terminal struct {
	out   bytes.Buffer
	width int
	style styles
}

// styles are the few that the terminal report uses.
type styles struct{ plain, title, faint, bad lipgloss.Style }

func palette(color bool) styles {
	r := lipgloss.NewRenderer(io.Discard)
	r.SetColorProfile(termenv.Ascii)
	if color {
		r.SetColorProfile(termenv.ANSI)
	}
	return styles{
		plain: r.NewStyle(), title: r.NewStyle().Bold(true), faint: r.NewStyle().Faint(true),
		bad: r.NewStyle().Foreground(lipgloss.Color("1")),
	}
}

func (t *terminal) heading(r *model.Report) {
	t.paragraph(t.style.title, "", r.Run.Title)
	e := r.Run.Environment
	facts := []string{r.Run.ID}
	if e.CPUs > 0 {
		facts = append(facts, phrase.Count(e.CPUs, "CPU"))
	}
	if r.Run.Short {
		facts = append(facts, "short form")
	}
	if e.Kernel != "" {
		facts = append(facts, "Linux "+e.Kernel)
	}
	if r.Run.Status != "" {
		facts = append(facts, string(r.Run.Status))
	}
	t.paragraph(t.style.faint, "", strings.Join(facts, ", "))
	if r.Run.Options.Command != "" {
		t.paragraph(t.style.faint, "  ", r.Run.Command())
	}
}

// figures writes one table. A table wider than the terminal is written in parts.
func (t *terminal) figures(f model.Figures) {
	t.out.WriteByte('\n')
	t.paragraph(t.style.title, "", f.Title)
	for i, part := range t.parts(f) {
		if i > 0 {
			t.out.WriteByte('\n')
		}
		heads, rows := cellsOf(part, true)
		if widthOf(heads, rows) > t.width {
			heads, rows = cellsOf(part, false)
		}
		t.grid(heads, rows, wordsOf(part))
	}
	for _, line := range f.Legend() {
		t.paragraph(t.style.faint, "  ", line)
	}
}

// grid writes rows under heads of up to two lines; columns of words stand to
// the left, figures to the right. lipgloss shows one line of a heading, so the
// heading is the table's first rows and the rule below it is put in here.
func (t *terminal) grid(heads []string, rows [][]string, words map[int]bool) {
	upper, lower := make([]string, len(heads)), make([]string, len(heads))
	for i, head := range heads {
		var below bool
		if upper[i], lower[i], below = strings.Cut(head, "\n"); !below {
			upper[i], lower[i] = "", head
		}
	}
	drawn := table.New().Border(lipgloss.HiddenBorder()).
		BorderTop(false).BorderBottom(false).BorderLeft(false).BorderRight(false).BorderColumn(false).
		Rows(upper, lower).Rows(rows...).
		StyleFunc(func(row, col int) lipgloss.Style {
			style := t.style.plain
			if row == 1 || row == 0 && upper[col] != "" {
				style = t.style.title
			}
			if col > 0 {
				style = style.PaddingLeft(gap)
			}
			if !words[col] {
				style = style.Align(lipgloss.Right)
			}
			return style
		})
	lines := strings.Split(strings.TrimRight(drawn.String(), "\n"), "\n")
	rule := t.style.faint.Render(strings.Repeat("─", lipgloss.Width(lines[0])))
	for i, line := range slices.Insert(lines, min(2, len(lines)), rule) {
		if line = strings.TrimRight(line, " "); line != "" || i > 0 {
			t.out.WriteString(line + "\n")
		}
	}
}

func (t *terminal) troubles(r *model.Report) {
	list := r.Troubles()
	if len(list) == 0 {
		return
	}
	t.out.WriteByte('\n')
	for _, trouble := range list {
		t.paragraph(t.style.bad, "  ", "! "+trouble.String())
	}
}

func (t *terminal) bullets(title string, lines []string, style lipgloss.Style) {
	if len(lines) == 0 {
		return
	}
	t.out.WriteByte('\n')
	t.paragraph(t.style.title, "", title)
	for _, line := range lines {
		t.paragraph(style, "  ", "• "+line)
	}
}

func (t *terminal) published(r *model.Report) {
	list := r.Beside()
	if len(list) == 0 {
		return
	}
	t.out.WriteByte('\n')
	t.paragraph(t.style.title, "", "Published beside measured")
	heads := []string{"scenario", "what", "published", "measured", "ratio\npublished", "ratio\nmeasured"}
	var rows [][]string
	for _, b := range list {
		rows = append(rows, clean([]string{b.Scenario, b.Label(), b.Printed, b.MeasuredText(), b.PublishedRatioText(), b.MeasuredRatioText()}))
	}
	heads, rows = withoutEmpty(heads, rows)
	t.gridOrLines(heads, rows, map[int]bool{0: true, 1: true})
	for _, source := range sources(list) {
		t.paragraph(t.style.faint, "  ", source)
	}
}

// paragraph writes text wrapped to the width; lines after the first are
// indented.
func (t *terminal) paragraph(style lipgloss.Style, indent, text string) {
	for i, line := range wrap(phrase.Printable(text), t.width-len(indent)) {
		if i > 0 {
			line = indent + line
		}
		t.out.WriteString(style.Render(line) + "\n")
	}
}
