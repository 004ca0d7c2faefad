package text

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"windtunnel/lab/profile/folded"
	"windtunnel/lab/report/model"
)

// WriteProfiles writes the CPU profiles of each scenario for a terminal: a table by
// category for both sides, and the cost of the profiler. For a report without profiles
// it writes nothing.
func WriteProfiles(w io.Writer, r *model.Report, opts Options) error {
	t := newTerminal(opts)
	for i := range r.Scenarios {
		sides := r.ProfilesOf(r.Scenarios[i].ID)
		if len(sides) == 0 {
			continue
		}
		if err := t.profiles(r.Scenarios[i].ID, sides); err != nil {
			return err
		}
	}
	if _, err := w.Write(t.out.Bytes()); err != nil {
		return fmt.Errorf("write the profiles of run %s: %w", r.Run.ID, err)
	}
	return nil
}

// profiles writes the table of one scenario with a row for each category. Each side has
// columns for cores and share of the CPU time. A stream also has the CPU time for each
// byte.
func (t *terminal) profiles(scenario string, sides []*model.Profile) error {
	var order []string
	columns := make([]map[string]folded.CategoryRow, len(sides))
	heads := []string{"where the CPU time went"}
	for i, p := range sides {
		data, err := folded.Decode(p.Data)
		if err != nil {
			return fmt.Errorf("decode the %s's profile of %s: %w", p.Side, scenario, err)
		}
		columns[i] = map[string]folded.CategoryRow{}
		for _, row := range folded.Categories(data) {
			columns[i][row.Name] = row
			if !slices.Contains(order, row.Name) {
				order = append(order, row.Name)
			}
		}
		heads = append(heads, p.Side+"\ncores", p.Side+"\n%")
		if p.Bytes > 0 {
			heads = append(heads, p.Side+"\nns/byte")
		}
	}
	apart := func(name string) int {
		switch name {
		case folded.Wire:
			return 1
		case folded.Idle:
			return 2
		}
		return 0
	}
	slices.SortStableFunc(order, func(a, b string) int { return apart(a) - apart(b) })
	var rows [][]string
	for _, name := range order {
		row := []string{name}
		for i, p := range sides {
			c, ok := columns[i][name]
			cells := sideCells(p, c.Cores, c.Percent, ok)
			if apart(name) > 0 {
				cells[1] = "" // not part of the node's busy time
			}
			row = append(row, cells...)
		}
		rows = append(rows, row)
	}
	sum, metered := []string{"busy, by the samples"}, []string{"busy, by the meter"}
	for _, p := range sides {
		sum = append(sum, sideCells(p, p.Sampled, 100, true)...)
		metered = append(metered, sideCells(p, p.Metered, 100*p.Metered/p.Sampled, true)...)
	}
	t.title(scenario)
	g := model.Grid{Heads: heads, Words: map[int]bool{0: true}, Rows: append(rows, sum, metered)}
	if t.fits(g) {
		t.grid(g)
	} else { // a table for each side
		from := 1
		for _, p := range sides {
			to := from + len(sideCells(p, 0, 0, false))
			t.grid(cut(g, from, to))
			from = to
		}
	}
	if s := sides[0].Slowdown; s != nil {
		t.paragraph(t.style.faint, "", fmt.Sprintf("With the profiler the traffic ran at %s of its rate, n = %d; these trials count in no other figure.", s.Percent(), s.N))
	}
	t.faint(warningsOf(sides))
	return nil
}

// cut returns column 0 and the columns from…to−1 of a grid.
func cut(g model.Grid, from, to int) model.Grid {
	out := model.Grid{Heads: slices.Concat(g.Heads[:1], g.Heads[from:to]), Words: g.Words}
	for _, row := range g.Rows {
		out.Add(slices.Concat(row[:1], row[from:to])...)
	}
	return out
}

// sideCells returns the cells of one side in a row.
func sideCells(p *model.Profile, cores, share float64, ok bool) []string {
	n := 2
	if p.Bytes > 0 {
		n = 3
	}
	list := make([]string, n)
	if !ok || p.Sampled <= 0 {
		return list
	}
	list[0], list[1] = fmt.Sprintf("%.3f", cores), fmt.Sprintf("%.1f", share)
	if n == 3 {
		list[2] = fmt.Sprintf("%.3f", 1e9*cores/p.Bytes)
	}
	return list
}

// warningsOf lists the warnings of the profiles, each once.
func warningsOf(sides []*model.Profile) []string {
	var list []string
	for _, p := range sides {
		data, err := folded.Decode(p.Data)
		if err != nil {
			continue // profiles returned this error
		}
		for _, w := range data.Warnings {
			if w = strings.TrimSpace(w); !slices.Contains(list, w) {
				list = append(list, w)
			}
		}
	}
	return list
}
