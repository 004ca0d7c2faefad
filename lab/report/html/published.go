package html

import (
	"windtunnel/lab/report/model"
)

// publishedTable is a document's table twice, as published and as measured,
// and the ratios of both.
type publishedTable struct {
	*model.PublishedTable
	Shapes  []shape
	Ratios  []publishedRatio
	Remarks []string
}

// shape is the document's table with one kind of figure in its cells.
type shape struct {
	Name string // "published" or "measured"
	Rows []shapeRow
}

type shapeRow struct {
	Name  string
	Cells []shapeCell
}

type shapeCell struct {
	Text   string
	Range  string // of a measured figure
	Reason bool   // Text says why there is no figure
}

// publishedRatio is one figure as a ratio to its baseline.
type publishedRatio struct {
	Row, Column, Of             string
	Published, Measured, Differ string
	Verdict                     mark
}

func (b *builder) publishedTables() []publishedTable {
	var list []publishedTable
	for i := range b.r.Tables {
		t := &b.r.Tables[i]
		out := publishedTable{PublishedTable: t, Remarks: t.Remarks(), Shapes: []shape{
			shaped("published", t, func(c *model.PublishedCell) shapeCell { return shapeCell{Text: c.Printed} }),
			shaped("measured", t, measuredCell),
		}}
		for _, c := range t.Ratios() {
			out.Ratios = append(out.Ratios, publishedRatio{
				Row: c.Row, Column: c.Column, Of: c.Scenario + " / " + c.Against,
				Published: c.PublishedRatioText(), Measured: c.MeasuredRatioText(), Differ: c.Why,
				Verdict: agreed(c.Agreement),
			})
		}
		list = append(list, out)
	}
	return list
}

func shaped(name string, t *model.PublishedTable, of func(*model.PublishedCell) shapeCell) shape {
	out := shape{Name: name}
	for _, r := range t.Rows {
		row := shapeRow{Name: r.Name}
		for _, c := range r.Cells {
			var cell shapeCell
			if c != nil {
				cell = of(c)
			}
			row.Cells = append(row.Cells, cell)
		}
		out.Rows = append(out.Rows, row)
	}
	return out
}

func measuredCell(c *model.PublishedCell) shapeCell {
	text := c.MeasuredText()
	return shapeCell{Text: text, Range: c.MeasuredRange(), Reason: text == c.Absent && text != ""}
}

// agreed puts an agreement as a sign and a word; the word alone tells it too.
func agreed(a model.Agreement) mark {
	m := mark{Sign: a.Sign(), Word: string(a)}
	switch a {
	case model.SameMagnitude:
		m.Class = "holds"
	case model.OtherMagnitude:
		m.Class = "alike"
	case model.Disagrees:
		m.Class = "refuted"
	case model.Unsettled:
		m.Class = "undecided"
	case model.TooFewToTell:
		m.Class = "few"
	}
	return m
}
