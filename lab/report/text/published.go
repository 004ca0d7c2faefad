package text

import (
	"fmt"
	"slices"
	"strings"

	"windtunnel/lab/report/model"
)

// publishedTables writes what documents and this run have as ratios to their
// baselines, one line a figure, compactly: a figure that several tables have
// stands once, and one without ratio only where its table has none at all.
func (t *terminal) publishedTables(tables []model.PublishedTable) {
	if len(tables) == 0 {
		return
	}
	t.out.WriteByte('\n')
	t.paragraph(t.style.title, "", "Published beside measured")
	heads := []string{"", "", "published", "measured", "ratio\npublished", "ratio\nmeasured", ""}
	var rows [][]string
	shown := make(map[string]bool)
	for i := range tables {
		cells := worthShowing(&tables[i], shown)
		if len(cells) == 0 {
			continue
		}
		rows = append(rows, []string{fmt.Sprintf(titleMark, i), "", "", "", "", "", ""})
		for _, c := range cells {
			rows = append(rows, clean([]string{"  " + c.Row, c.Column, c.Printed, brief(c), c.PublishedRatioText(), c.MeasuredRatioText(), c.Agreement.Sign()}))
		}
	}
	heads, rows = withoutEmpty(heads, rows)
	if words := map[int]bool{0: true, 1: true}; widthOf(heads, rows) <= t.width {
		t.titledGrid(heads, rows, words, tables)
	} else {
		for _, row := range rows {
			if n, ok := titleOf(row[0]); ok {
				t.paragraph(t.style.title, "", tables[n].Title)
			} else {
				t.gridOrLines(heads, [][]string{row}, words)
			}
		}
	}
	t.publishedLegend(tables)
}

// titleMark replaces a table's title in a row of the grid, because a title is too
// wide for a column. No text of a report contains a control character.
const titleMark = "\x01%d\x01"

// titleOf returns the table of a titleMark in a line of the grid.
func titleOf(text string) (table int, ok bool) {
	_, err := fmt.Sscanf(text, titleMark, &table)
	return table, err == nil
}

// titledGrid writes one grid of all tables, each below its title.
func (t *terminal) titledGrid(heads []string, rows [][]string, words map[int]bool, tables []model.PublishedTable) {
	drawn := terminal{width: t.width, style: t.style}
	drawn.grid(heads, rows, words)
	for line := range strings.Lines(drawn.out.String()) {
		if n, ok := titleOf(line); ok {
			t.paragraph(t.style.title, "", tables[n].Title)
		} else {
			t.out.WriteString(line)
		}
	}
}

// worthShowing lists the cells of the table for a terminal, without those
// already shown.
func worthShowing(t *model.PublishedTable, shown map[string]bool) []*model.PublishedCell {
	ratios := len(t.Ratios()) > 0
	var list []*model.PublishedCell
	for _, r := range t.Rows {
		for _, c := range r.Cells {
			if c == nil || c.Metric == "" || ratios && c.PublishedRatio == nil {
				continue
			}
			key := strings.Join([]string{c.Scenario, c.Against, c.Metric, c.Printed}, "\x00")
			if !shown[key] {
				list = append(list, c)
			}
			shown[key] = true
		}
	}
	return list
}

func (t *terminal) publishedLegend(tables []model.PublishedTable) {
	var legend []string
	for _, a := range agreements(tables) {
		legend = append(legend, a.Sign()+" "+string(a))
	}
	text := "Absolute figures belong to their hardware; ratios are to each one's own baseline. The tables as the documents have them, their sources and the rule stand in the other forms of the report."
	if len(legend) > 0 {
		text = strings.Join(legend, "; ") + ". " + text
	}
	t.paragraph(t.style.faint, "  ", text)
	for i := range tables {
		for _, r := range tables[i].Rows {
			for _, c := range r.Cells {
				if c != nil && c.Doubt != "" {
					t.paragraph(t.style.faint, "  ", c.Row+", "+c.Column+": "+c.Doubt+".")
				}
			}
		}
	}
}

// brief is MeasuredText where there is no room for a reason.
func brief(c *model.PublishedCell) string {
	text := c.MeasuredText()
	if text == c.Absent {
		text, _, _ = strings.Cut(text, ":")
		if len([]rune(text)) > 21 { // "not in the short form"
			return "none"
		}
	}
	return text
}

// agreements lists those that occur, in the order of their signs.
func agreements(tables []model.PublishedTable) []model.Agreement {
	var list []model.Agreement
	for _, a := range []model.Agreement{model.SameMagnitude, model.OtherMagnitude, model.Disagrees, model.Unsettled, model.TooFewToTell} {
		if slices.ContainsFunc(tables, func(t model.PublishedTable) bool {
			return slices.ContainsFunc(t.Ratios(), func(c *model.PublishedCell) bool { return c.Agreement == a })
		}) {
			list = append(list, a)
		}
	}
	return list
}
