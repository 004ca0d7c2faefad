package compare

import (
	"fmt"
	"slices"

	"windtunnel/lab/sample"
	"windtunnel/lab/stats"
)

// notes says, once each, what a reader has to know of the whole comparison.
func (p *pairing) notes(c *Comparison) []string {
	var notes []string
	drift := "The runs were made one after the other, not in shuffled blocks: whatever drifted on the machine between them is in the ratios B/A"
	if len(c.Ratios) > 0 {
		drift += "; the ratios to a baseline, taken within blocks, feel it less"
	}
	notes = append(notes, drift+".")
	if c.OtherMachine {
		note := "The runs are from different machines: a difference is not called better or worse."
		if c.Across {
			note = "The runs are from different machines, and are judged all the same, as asked for."
		}
		notes = append(notes, note)
	}
	for i, side := range []*columns{p.a, p.b} {
		name := string(rune('A' + i))
		if status := side.side.Run.Status; status != sample.Complete {
			notes = append(notes, fmt.Sprintf("Run %s is not complete (%s): blocks of it are missing.", name, status))
		}
		if n := side.info().Invalid; n > 0 {
			notes = append(notes, fmt.Sprintf("Run %s: %s left out, failed or invalid (%s).", name, plural(n, "trial"), side.troubles()))
		}
	}
	notes = append(notes, p.dirt()...)
	return append(notes, few(c.Values)...)
}

// dirt notes values that are no numbers.
func (p *pairing) dirt() []string {
	var notes []string
	for _, id := range p.ids {
		for _, info := range sample.Known() {
			if !p.wanted(id, info.Metric) {
				continue
			}
			if n := p.a.dirty(id, info.Metric) + p.b.dirty(id, info.Metric); n > 0 {
				notes = append(notes, fmt.Sprintf("%s: %s of %s left out, not finite numbers.", id, plural(n, "value"), info.Metric))
			}
		}
	}
	return notes
}

// few says how many trials would do where rows have too few to be judged.
func few(rows []Row) []string {
	tested, short, note := 0, false, ""
	for i := range rows {
		if rows[i].P != nil {
			tested++
			short = short || rows[i].Verdict == TooFew
		}
	}
	if !short {
		return nil
	}
	note = fmt.Sprintf("Too few trials to find anything in %s, corrected for their number", plural(tested, "figure"))
	if n := enough(tested); n > 0 {
		note += fmt.Sprintf(": it takes %d valid trials of a scenario in each run, or fewer figures (--metric, --scenario)", n)
	}
	return []string{note + "."}
}

// enough returns the least number of trials a side with which each of so many
// rows can reach significance at once; 0 where it is beyond all reason.
func enough(rows int) int {
	for n := 3; n <= 50; n++ {
		below, above := make([]float64, n), make([]float64, n)
		for i := range n {
			below[i], above[i] = float64(1+i), float64(1+n+i)
		}
		test, ok, err := stats.MannWhitney(above, below)
		if !ok || err != nil {
			continue
		}
		floors := slices.Repeat([]float64{test.Floor}, rows)
		if adjusted := stats.Holm(floors); slices.Max(adjusted) <= Alpha {
			return n
		}
	}
	return 0
}
