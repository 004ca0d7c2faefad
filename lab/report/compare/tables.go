package compare

import (
	"slices"
	"time"

	"windtunnel/lab/report/model"
)

// Table is one table of a comparison, as text.
type Table struct {
	Title string
	Heads []string
	Rows  []TableRow
}

// TableRow is one row of a table. Verdict is "" in tables without figures.
type TableRow struct {
	Cells   []string
	Verdict Verdict
}

// Tables returns the tables of the comparison, in the order of its Markdown form.
func (c *Comparison) Tables() []Table {
	var all []Table
	for _, g := range c.grids() {
		t := Table{Title: g.title, Heads: g.heads}
		for i, cells := range g.rows {
			row := TableRow{Cells: cells}
			if g.verdicts != nil {
				row.Verdict = g.verdicts[i]
			}
			t.Rows = append(t.Rows, row)
		}
		all = append(all, t)
	}
	return all
}

// RatioText prints the ratio B over A with its interval: "0.951 [0.940, 0.962]"; "—" if
// there is none.
func (r *Row) RatioText() string { return bracketed(r.Ratio) }

// Scale returns the unit in which all figures of the series are printed.
func (s *Series) Scale() model.Scale { return model.ScaleOf(s.Metric, s.medians()...) }

// Dates returns the start of each run in UTC: its date, or with the time if two runs began on
// one day.
func (s *Series) Dates() (list []string) {
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

// RevisionText returns the git revision of the run, shortened for readers; "—" if it is
// not known.
func (p *TrendPoint) RevisionText() string { return orNone(short(p.Revision)) }

// Text describes the change: "◀ ×0.921, p < 0.001".
func (c *Change) Text() string { return c.mark() }
