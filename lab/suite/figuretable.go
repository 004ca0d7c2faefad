package suite

import (
	"fmt"
	"slices"
)

// tables adds the tables of documents, without their figures.
func (x *expansion) tables() {
	for _, t := range x.s.tables.V {
		t.value.Name = t.name
		x.plan.Tables = append(x.plan.Tables, t.value)
	}
}

// checkTableCell reports two cells with the same row and column of a table, and a
// figure without a source. It returns false if the entry cannot be used.
func (x *expansion) checkTableCell(e at[publishedSpec], seen map[[3]string]position) bool {
	p := e.V
	if !p.keys.has("table") {
		if p.keys.has("row") || p.keys.has("column") {
			x.j.fail(e.Pos, "a row or column without a table", "add the key table with a name from the block tables")
			return false
		}
		if !p.keys.has("source") {
			x.j.fail(e.Pos, "a published figure lacks source", `add a line "source: …" with the document and the page, or make it a cell of a table`)
			return false
		}
		return true
	}
	names := namesOf(x.s.tables.V)
	switch {
	case p.Table == "" || x.s.tables.Set && names == nil:
		return false // unreadable; already reported
	case !slices.Contains(names, p.Table):
		x.j.fail(p.keys["table"], fmt.Sprintf("%q is not defined under tables", p.Table), Suggest(p.Table, "tables", names))
		return false
	case !p.keys.has("row") || !p.keys.has("column"):
		x.j.fail(e.Pos, "a cell of a table lacks row or column", "name both, as the document does")
		return false
	}
	cell := [3]string{p.Table, p.Row, p.Column}
	if first, taken := seen[cell]; taken {
		x.j.fail(e.Pos, fmt.Sprintf("table %q has two cells in row %q and column %q, the first in line %d", p.Table, p.Row, p.Column, first.line), "remove or rename one of the two")
		return false
	}
	seen[cell] = e.Pos
	return true
}

func (x *expansion) sourceOf(table string) string {
	for _, t := range x.plan.Tables {
		if t.Name == table {
			return t.Source
		}
	}
	return ""
}

// checkEmptyTables reports tables without a figure.
func (x *expansion) checkEmptyTables() {
	if x.s.published.Set && x.s.published.V == nil {
		return // unreadable; already reported
	}
	for _, t := range x.s.tables.V {
		if !slices.ContainsFunc(x.s.published.V, func(p at[publishedSpec]) bool { return p.V.Table == t.name }) {
			x.j.fail(t.pos, fmt.Sprintf("table %q has no figures", t.name), fmt.Sprintf("add figures with %q under published, or remove it", "table: "+t.name))
		}
	}
}

// keepPublished removes the figures of scenarios that are not in kept. If the scenario
// of one cell is in kept, the table keeps all its cells; the report marks the cells
// that were not measured.
func (p *Plan) keepPublished(kept map[string]bool) {
	stays := map[string]bool{}
	for _, f := range p.Published {
		if f.Table != "" && kept[f.Scenario] && (f.Baseline == "" || kept[f.Baseline]) {
			stays[f.Table] = true
		}
	}
	p.Published = slices.DeleteFunc(p.Published, func(f Published) bool {
		return !stays[f.Table] && (f.Table != "" || !kept[f.Scenario])
	})
	p.Tables = slices.DeleteFunc(p.Tables, func(t Table) bool { return !stays[t.Name] })
}
