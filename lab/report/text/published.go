package text

import (
	"slices"
	"strings"

	"windtunnel/lab/report/model"
)

// published writes the published and the measured figures with their ratios to the
// baselines, a line for each figure. It writes a figure of several tables only once. It
// omits figures without a ratio, unless the whole table has no ratio. Then follow the
// figures that are in no table, with their documents.
func (t *terminal) published(r *model.Report) {
	if len(r.Tables) > 0 {
		t.title("Published beside measured")
		g := model.Grid{Heads: []string{"", "", "published", "measured", "ratio published", "ratio measured", ""}, Words: map[int]bool{0: true, 1: true}}
		shown := make(map[string]bool)
		for i := range r.Tables {
			cells := worthShowing(&r.Tables[i], shown)
			if len(cells) > 0 {
				g.Add(r.Tables[i].Title)
			}
			for _, c := range cells {
				g.Add(c.Row, c.Column, c.Printed, brief(c), c.PublishedRatioText(), c.MeasuredRatioText(), c.Agreement.Sign())
			}
		}
		t.grid(withoutEmpty(g))
		t.publishedLegend(r.Tables)
	}
	if g := r.BesideGrid(); len(g.Rows) > 0 {
		t.title("Published beside measured")
		for i := range g.Rows {
			g.Rows[i][6] = "" // t.faint writes the documents below
		}
		t.grid(withoutEmpty(g))
		t.faint(r.Sources())
	}
}

// worthShowing lists the cells of the table that published writes. shown has the
// figures that it wrote before.
func worthShowing(t *model.PublishedTable, shown map[string]bool) []*model.PublishedCell {
	ratios := len(t.Ratios()) > 0
	return slices.DeleteFunc(t.Cells(), func(c *model.PublishedCell) bool {
		key := strings.Join([]string{c.Scenario, c.Against, c.Metric, c.Printed}, "\x00")
		if c.Metric == "" || ratios && c.PublishedRatio == nil || shown[key] {
			return true
		}
		shown[key] = true
		return false
	})
}

func (t *terminal) publishedLegend(tables []model.PublishedTable) {
	text := "Absolute figures belong to their hardware; ratios are to each one's own baseline. The HTML and Markdown reports have the documents' tables, their sources and the rule."
	var signs, doubts []string
	for _, a := range model.Agreements {
		if slices.ContainsFunc(tables, func(t model.PublishedTable) bool { return len(t.Agreeing(a)) > 0 }) {
			signs = append(signs, a.Sign()+" "+string(a))
		}
	}
	if len(signs) > 0 {
		text = strings.Join(signs, "; ") + ". " + text
	}
	for i := range tables {
		for _, c := range tables[i].Cells() {
			if c.Doubt != "" {
				doubts = append(doubts, c.Row+", "+c.Column+": "+c.Doubt+".")
			}
		}
	}
	t.faint(append([]string{text}, doubts...))
}

// brief returns MeasuredText, with a long reason cut to one word or phrase.
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
