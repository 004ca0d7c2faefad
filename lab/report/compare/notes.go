package compare

import (
	"fmt"
	"slices"

	"windtunnel/internal/phrase"
	"windtunnel/lab/sample"
)

// notes lists remarks on the whole comparison, each once.
func (p *pairing) notes(c *Comparison) []string {
	notes := append(spreadNotes(c), p.stateNotes()...)
	if p.oneAfterOther() {
		note := "All runs of one side began before all runs of the other: if the machine changed between them, B/A contains that change; make runs of A and B in turns"
		if len(c.Ratios) > 0 {
			note += ", and prefer the ratios to a baseline, which such changes affect less"
		}
		notes = append(notes, note+".")
	}
	if c.OtherMachine {
		note := "The runs are from different machines: a difference is not called better or worse."
		if c.Across {
			note = "The runs are from different machines, and are judged nevertheless (--across-machines)."
		}
		notes = append(notes, note)
	}
	if other := otherTrials(c.Environment); len(other) > 0 {
		notes = append(notes, fmt.Sprintf("The runs count different trials (%s), so all verdicts are undecided. Repeat one run with the options of the other.", changes(other)))
	}
	if p.otherDistance() {
		notes = append(notes, "The host had the CPUs at a different distance for each side, so all verdicts are undecided. Repeat both runs with the same --cpu-distance.")
	}
	for i, side := range []group{p.a, p.b} {
		for _, run := range side {
			name := "Run " + string(rune('A'+i))
			if len(side) > 1 {
				name += " (" + run.side.Run.ID + ")"
			}
			if status := run.side.Run.Status; status != sample.Complete {
				notes = append(notes, fmt.Sprintf("%s is not complete (%s): blocks of it are missing.", name, status))
			}
			if n, what := run.warned(); n > 0 {
				notes = append(notes, fmt.Sprintf("%s: %s counted in spite of conditions that were not valid (%s).", name, phrase.Count(n, "trial"), what))
			}
			if n := run.info().Invalid; n > 0 {
				notes = append(notes, fmt.Sprintf("%s: %s left out, failed or invalid (%s).", name, phrase.Count(n, "trial"), run.troubles()))
			}
		}
	}
	return append(notes, p.dirt()...)
}

// oneAfterOther reports whether all runs of one side began before all runs of the other.
func (p *pairing) oneAfterOther() bool {
	span := func(g group) (first, last int64) {
		for i, c := range g {
			at := c.side.Run.Started.UnixNano()
			if i == 0 {
				first, last = at, at
			}
			first, last = min(first, at), max(last, at)
		}
		return first, last
	}
	firstA, lastA := span(p.a)
	firstB, lastB := span(p.b)
	return lastA < firstB || lastB < firstA
}

// dirt lists metrics with values that are not numbers.
func (p *pairing) dirt() []string {
	var notes []string
	for _, id := range p.ids {
		for _, m := range p.metrics(id) {
			n := 0
			for _, c := range slices.Concat(p.a, p.b) {
				n += c.dirty(id, m)
			}
			if n > 0 {
				notes = append(notes, fmt.Sprintf("%s: %s of %s left out, not finite numbers.", id, phrase.Count(n, "value"), m))
			}
		}
	}
	return notes
}
