package text

import (
	"strings"

	"windtunnel/lab/report/model"
)

// ladder writes what each step costs. On a narrow terminal it leaves out the share
// of the last step.
func (t *terminal) ladder(l model.LadderTable) {
	t.out.WriteByte('\n')
	t.paragraph(t.style.title, "", l.Title)
	heads := []string{"step", "median", "added", "ratio to the\nstep before", "of the\nlast step"}
	var rows [][]string
	for _, line := range l.Lines {
		step := line.Heading
		if step == "" {
			step = "  " + line.Step
		}
		ratio := strings.Join(strings.Fields(line.Ratio+" "+line.Range+" "+line.Mark), " ")
		rows = append(rows, clean([]string{step, line.Figure, line.Added, ratio, line.Share}))
	}
	if widthOf(heads, rows) > t.width {
		heads = heads[:4]
		for i := range rows {
			rows[i] = rows[i][:4]
		}
	}
	t.gridOrLines(heads, rows, map[int]bool{0: true})
	for _, line := range l.Legend {
		t.paragraph(t.style.faint, "  ", line)
	}
}

// gridOrLines writes a table. If the terminal is too narrow, it writes a line for
// each row.
func (t *terminal) gridOrLines(heads []string, rows [][]string, words map[int]bool) {
	if widthOf(heads, rows) <= t.width {
		t.grid(heads, rows, words)
		return
	}
	for _, row := range rows {
		var names, cells []string
		for i, text := range row {
			switch text = strings.TrimSpace(text); {
			case text == "":
			case words[i]:
				names = append(names, text)
			default:
				cells = append(cells, strings.TrimSpace(strings.ReplaceAll(heads[i], "\n", " ")+" "+text))
			}
		}
		line := strings.Join(names, ", ")
		if len(cells) > 0 {
			line = "• " + line + ": " + strings.Join(cells, ", ")
		}
		t.paragraph(t.style.plain, "  ", line)
	}
}
