package report

import "strings"

// ladder writes what each step costs, without the columns that do not fit.
func (t *terminal) ladder(l LadderTable) {
	t.out.WriteByte('\n')
	t.paragraph(t.style.title, "", l.Title)
	// What gives way first where the terminal is narrow.
	for _, shown := range []ladderColumns{{true, true}, {true, false}, {false, false}} {
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
type ladderColumns struct{ ranges, share bool }

func (c ladderColumns) table(l LadderTable) (heads []string, rows [][]string) {
	heads = []string{"step", "median", "added", "ratio to the\nstep before"}
	if c.share {
		heads = append(heads, "of the\nlast step")
	}
	for _, line := range l.Lines {
		step := line.Heading
		if step == "" {
			step = "  " + line.Step
		}
		ratio := line.Ratio
		if c.ranges && line.Range != "" {
			ratio += " " + line.Range
		}
		row := []string{step, line.Figure, line.Added, strings.TrimSpace(ratio + " " + line.Mark)}
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
			text += ", added " + line.Added + ", ratio " + strings.TrimSpace(line.Ratio+" "+line.Range+" "+line.Mark)
		}
		t.paragraph(t.style.plain, "    ", text)
	}
}
