package inspect

import "strings"

// Changes is a table compared with an earlier reading.
type Changes struct {
	Table           // the rows of the later reading, then the deleted rows
	Marks  []Mark   // by row
	Differ [][]bool // by row and column
}

// Mark is the change of a row between two readings.
type Mark byte

const (
	Same Mark = iota
	New
	Changed
	Gone
)

// sign is the character of a mark.
func (m Mark) sign(colour bool) string {
	switch m {
	case New:
		return paint("+", green, colour)
	case Changed:
		return paint("~", yellow, colour)
	case Gone:
		return paint("-", red, colour)
	}
	return " "
}

// Compare marks the changes from before to after, which have the same columns. Key
// columns identify rows. Rows with equal keys are matched in order.
func Compare(before, after Table) Changes {
	c := Changes{Table: Table{Columns: after.Columns, Empty: after.Empty}}
	earlier := map[string][][]string{}
	for _, row := range before.Rows {
		k := after.key(row)
		earlier[k] = append(earlier[k], row)
	}
	for _, row := range after.Rows {
		k := after.key(row)
		was := earlier[k]
		if len(was) == 0 {
			c.append(row, New, make([]bool, len(row)))
			continue
		}
		earlier[k] = was[1:]
		mark, differ := after.compareRow(was[0], row)
		c.append(row, mark, differ)
	}
	for _, row := range before.Rows {
		k := after.key(row)
		if left := earlier[k]; len(left) > 0 {
			c.append(left[0], Gone, make([]bool, len(row)))
			earlier[k] = left[1:]
		}
	}
	return c
}

func (c *Changes) append(row []string, mark Mark, differ []bool) {
	c.Rows = append(c.Rows, row)
	c.Marks = append(c.Marks, mark)
	c.Differ = append(c.Differ, differ)
}

func (t Table) compareRow(before, after []string) (Mark, []bool) {
	mark, differ := Same, make([]bool, len(after))
	for i := range after {
		if after[i] != before[i] && !t.Columns[i].Clock {
			mark, differ[i] = Changed, true
		}
	}
	return mark, differ
}

// key joins a row's key cells. Cells hold no control characters, so the
// separator cannot occur in them.
func (t Table) key(row []string) string {
	var cells []string
	for i, c := range t.Columns {
		if c.Key {
			cells = append(cells, row[i])
		}
	}
	return strings.Join(cells, "\x00")
}

func (c Changes) mark(row int) Mark {
	if c.Marks == nil {
		return Same
	}
	return c.Marks[row]
}

func (c Changes) changed(row, column int) bool {
	return c.Differ != nil && c.Differ[row][column]
}
