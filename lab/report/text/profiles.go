package text

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"windtunnel/lab/profile/folded"
	"windtunnel/lab/report/model"
)

// WriteProfiles writes the CPU profiles of each scenario for a terminal: for each side a
// table by category, the largest first, and the cost of the profiler. For a report without
// profiles it writes nothing.
func WriteProfiles(w io.Writer, r *model.Report, opts Options) error {
	t := newTerminal(opts)
	for i := range r.Scenarios {
		sides := r.ProfilesOf(r.Scenarios[i].ID)
		if len(sides) == 0 {
			continue
		}
		t.title(r.Scenarios[i].ID)
		for _, p := range sides {
			if err := t.profile(p); err != nil {
				return err
			}
		}
		if s := sides[0].Slowdown; s != nil {
			t.paragraph(t.style.faint, "", fmt.Sprintf("With the profiler the traffic ran at %s of its rate, n = %d; these trials count in no other figure.", s.Percent(), s.N))
		}
		t.faint(warningsOf(sides))
	}
	if _, err := w.Write(t.out.Bytes()); err != nil {
		return fmt.Errorf("write the profiles of run %s: %w", r.Run.ID, err)
	}
	return nil
}

// profile writes the table of one side. A stream also has the CPU time for each byte.
func (t *terminal) profile(p *model.Profile) error {
	data, err := folded.Decode(p.Data)
	if err != nil {
		return fmt.Errorf("decode the %s's profile of %s: %w", p.Side, p.Scenario, err)
	}
	g := model.Grid{Heads: []string{"where the CPU time went: " + p.Side, "cores", "%"}, Words: map[int]bool{0: true}}
	if p.Bytes > 0 {
		g.Heads = append(g.Heads, "ns/byte")
	}
	g.Heads = append(g.Heads, "samples")
	add := func(name string, cores float64, percent, samples string) {
		row := []string{name, fmt.Sprintf("%.3f", cores), percent}
		if p.Bytes > 0 {
			row = append(row, fmt.Sprintf("%.3f", 1e9*cores/p.Bytes))
		}
		g.Add(append(row, samples)...)
	}
	for _, c := range folded.Categories(data) {
		percent := fmt.Sprintf("%.1f", c.Percent)
		if c.Name == folded.Idle || c.Name == folded.Wire {
			percent = "" // not part of the node's busy time
		}
		add(c.Name, c.Cores, percent, fmt.Sprint(c.Samples))
	}
	if p.Sampled > 0 {
		add("busy, by the samples", p.Sampled, "100.0", "")
		add("busy, by the meter", p.Metered, fmt.Sprintf("%.1f", 100*p.Metered/p.Sampled), "")
	}
	t.grid(g)
	return nil
}

// warningsOf lists the warnings of the profiles, each once.
func warningsOf(sides []*model.Profile) []string {
	var list []string
	for _, p := range sides {
		data, err := folded.Decode(p.Data)
		if err != nil {
			continue // profile returned this error
		}
		for _, w := range data.Warnings {
			if w = strings.TrimSpace(w); !slices.Contains(list, w) {
				list = append(list, w)
			}
		}
	}
	return list
}
