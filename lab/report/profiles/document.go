package profiles

import (
	"fmt"
	"slices"
	"strings"

	"windtunnel/internal/phrase"
	"windtunnel/lab/profile/folded"
	"windtunnel/lab/report/document"
	"windtunnel/lab/report/model"
)

// Document returns the CPU profiles of each scenario: for each side a table by category,
// the largest first, and the cost of the profiler.
func Document(r *model.Report) (d document.Document) {
	for i := range r.Scenarios {
		s := document.Section{Title: r.Scenarios[i].ID}
		sides := r.ProfilesOf(r.Scenarios[i].ID)
		notes := phrase.Lines{}
		for _, p := range sides {
			data, err := folded.Decode(p.Data)
			if err != nil {
				notes.Say("The %s's profile cannot be read: %v.", p.Side, err)
				continue
			}
			s.Tables = append(s.Tables, table(p, data))
			for _, w := range data.Warnings {
				if w = strings.TrimSpace(w); !slices.Contains(notes, w) {
					notes = append(notes, w)
				}
			}
		}
		if len(sides) > 0 {
			s.Notes = Slowdown(sides[0])
		}
		s.Notes = append(s.Notes, notes...)
		d.Add(s)
	}
	return d
}

// Slowdown says at which rate the traffic ran with the profiler; nil if that is not known.
func Slowdown(p *model.Profile) (text phrase.Lines) {
	if s := p.Slowdown; s != nil {
		text.Say("With the profiler the traffic ran at %s of its rate, n = %d; these trials count in no other figure.", s.Percent(), s.N)
	}
	return text
}

// table returns the table of one side. A stream also has the CPU time for each byte.
func table(p *model.Profile, data *folded.Profile) document.Table {
	t := document.Table{Columns: append(document.Words("where the CPU time went: "+p.Side), document.Figures("cores", "%", "ns/byte", "samples")...)}
	add := func(name string, cores float64, percent, samples string) {
		perByte := ""
		if p.Bytes > 0 {
			perByte = fmt.Sprintf("%.3f", 1e9*cores/p.Bytes)
		}
		t.Add(name, fmt.Sprintf("%.3f", cores), percent, perByte, samples)
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
	return t
}
