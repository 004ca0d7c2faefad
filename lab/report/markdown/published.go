package markdown

import (
	"slices"

	"windtunnel/lab/phrase"
	"windtunnel/lab/report/model"
)

// publishedTables writes, for each table of a document, the table itself, the
// measured figures in its shape, and both as ratios.
func (m *markdown) publishedTables(tables []model.PublishedTable) {
	if len(tables) == 0 {
		return
	}
	m.line("## Published beside measured")
	m.line("%s", escape(model.AgreementRule))
	for i := range tables {
		t := &tables[i]
		m.line("### %s", escape(phrase.Capital(t.Title)))
		m.line("Published (%s):", escape(t.Source))
		m.shape(t, (*model.PublishedCell).PrintedText)
		m.line("Measured:")
		m.shape(t, (*model.PublishedCell).MeasuredText)
		m.publishedRatios(t.Ratios())
		m.list("", t.Remarks())
	}
}

// shape writes one text a cell in the shape of the document's table.
func (m *markdown) shape(t *model.PublishedTable, text func(*model.PublishedCell) string) {
	heads := []string{escape(t.Corner)}
	for _, c := range t.Columns {
		heads = append(heads, escape(c))
	}
	var rows [][]string
	for _, r := range t.Rows {
		row := []string{escape(r.Name)}
		for _, c := range r.Cells {
			row = append(row, escape(text(c)))
		}
		rows = append(rows, row)
	}
	m.table(heads, map[int]bool{0: true}, rows)
}

func (m *markdown) publishedRatios(list []*model.PublishedCell) {
	if len(list) == 0 {
		return
	}
	m.line("Ratios, each to its own baseline:")
	var rows [][]string
	for _, c := range list {
		row := []string{c.Row, c.Column, c.Scenario + " / " + c.Against, c.PublishedRatioText(), c.MeasuredRatioText(), c.Verdict()}
		for i := range row {
			row[i] = escape(row[i])
		}
		rows = append(rows, row)
	}
	heads := []string{"row", "column", "ratio of", "published", "measured", "verdict"}
	m.table(heads, map[int]bool{0: true, 1: true, 2: true, 5: true}, slices.Clip(rows))
}
