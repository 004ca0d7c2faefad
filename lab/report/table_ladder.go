package report

import "strings"

// ladder writes what each step costs, without the columns that do not fit.
func (t *terminal) ladder(l LadderTable) {
	t.out.WriteByte('\n')
	t.paragraph(t.style.title, "", l.Title)
	// What gives way first where the terminal is narrow.
	for _, shown := range []ladderColumns{{true, true, true}, {true, true, false}, {true, false, false}, {false, false, false}} {
		heads, rows := shown.table(l)
		if widthOf(heads, rows) <= t.width || shown == (ladderColumns{}) {
			t.ladderGrid(l, heads, rows)
			break
		}
	}
	for _, line := range l.Legend {
		t.paragraph(t.style.faint, "  ", line)
	}
}

// ladderColumns are the columns that may be left out.
type ladderColumns struct{ ranges, change, share bool }

func (c ladderColumns) table(l LadderTable) (heads []string, rows [][]string) {
	heads = []string{"step", "figure", "added"}
	if c.change {
		heads = append(heads, "change")
	}
	if c.share {
		heads = append(heads, "of the\nlast step")
	}
	for _, line := range l.Lines {
		step := line.Heading
		if step == "" {
			step = "  " + line.Step
		}
		added := line.Added
		if c.ranges && line.Range != "" {
			added += " " + line.Range
		}
		if line.Mark != "" {
			added += " " + line.Mark
		}
		row := []string{step, line.Figure, strings.TrimSpace(added)}
		if c.change {
			row = append(row, line.Change)
		}
		if c.share {
			row = append(row, line.Share)
		}
		rows = append(rows, clean(row))
	}
	return heads, rows
}

// ladderGrid falls back to one line a step where not even the least table fits.
func (t *terminal) ladderGrid(l LadderTable, heads []string, rows [][]string) {
	if widthOf(heads, rows) <= t.width {
		t.grid(heads, rows, map[int]bool{0: true})
		return
	}
	for _, line := range l.Lines {
		if line.Heading != "" {
			t.paragraph(t.style.plain, "  ", line.Heading)
			continue
		}
		text := "  " + line.Step + ": " + line.Figure
		if line.Added != "" {
			text += ", added " + strings.TrimSpace(line.Added+" "+line.Range+" "+line.Mark)
		}
		t.paragraph(t.style.plain, "    ", text)
	}
}
