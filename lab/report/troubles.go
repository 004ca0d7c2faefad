package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"windtunnel/lab/phrase"
	"windtunnel/lab/sample"
)

// Trouble is why a scenario, or some of its trials, has no figures.
type Trouble struct {
	Scenario string
	What     string             // "skipped", "1 of 6 trials has no figures", "2 trials were repeated"
	Kind     sample.FailureKind // of the failure, or the gate's name
	Reason   string             // what was attempted, on what, and the remedy; or the figure that failed the gate
}

// Troubles lists what was skipped and what failed, in the order of the rows,
// each reason once.
func (r *Report) Troubles() []Trouble {
	var list []Trouble
	for i := range r.Scenarios {
		s := &r.Scenarios[i]
		if s.Skipped != "" {
			list = append(list, Trouble{Scenario: s.ID, What: "skipped", Reason: s.Skipped})
		}
		list = append(list, s.failures()...)
	}
	return list
}

// failures groups a scenario's attempts that do not count by their reason:
// first those that left a block without figures, then those that a repeat made
// good. Failures are told apart by their message, gates by their name: each
// trial's message has figures of its own, of which the worst is shown.
func (s *Scenario) failures() []Trouble {
	var order []*wreck
	index := make(map[wreckKey]*wreck)
	note := func(k wreckKey, block int) *wreck {
		if index[k] == nil {
			index[k] = &wreck{wreckKey: k}
			order = append(order, index[k])
		}
		if w := index[k]; !slices.Contains(w.blocks, block) {
			w.blocks = append(w.blocks, block)
		}
		return index[k]
	}
	lost := s.lostBlocks()
	for i := range s.Samples {
		sm := &s.Samples[i]
		if sm.Profiled || sm.Counts() {
			continue
		}
		if !sm.OK() {
			note(wreckKey{lost[sm.Block], string(sm.Failure.Kind), sm.Failure.Message}, sm.Block)
			continue
		}
		for _, g := range sm.Gates {
			w := note(wreckKey{lost[sm.Block], string(g.Name), ""}, sm.Block)
			if w.worst == nil || beyond(g) > beyond(*w.worst) {
				w.worst = &g
			}
		}
	}
	slices.SortStableFunc(order, func(a, b *wreck) int { return cmp.Compare(after(!a.lost), after(!b.lost)) })
	var list []Trouble
	for _, w := range order {
		list = append(list, w.trouble(s))
	}
	return list
}

// wreck is the blocks of a scenario with one reason not to count.
type wreck struct {
	wreckKey
	blocks []int
	worst  *sample.Gate // of a gate
}

type wreckKey struct {
	lost       bool
	kind, text string
}

func (w *wreck) trouble(s *Scenario) Trouble {
	t := Trouble{Scenario: s.ID, What: "repeated " + phrase.Count(len(w.blocks), "trial"), Kind: sample.FailureKind(w.kind), Reason: w.text}
	all := phrase.Count(s.Trials+s.Failed, "trial")
	switch {
	case w.worst == nil && w.lost:
		t.What = fmt.Sprintf("%d of %s without figures", len(w.blocks), all)
	case w.lost:
		t.What = fmt.Sprintf("%d of %s left out as not valid", len(w.blocks), all)
	}
	if w.worst != nil {
		t.Reason = remedy.ReplaceAllString(w.worst.Message, "$1") // Advice has the remedy
		if len(w.blocks) > 1 {
			t.Reason = "worst: " + t.Reason
		}
	}
	return t
}

// lostBlocks are the blocks without an attempt that counts.
func (s *Scenario) lostBlocks() map[int]bool {
	lost := make(map[int]bool)
	for i := range s.Samples {
		if sm := &s.Samples[i]; !sm.Profiled {
			before, known := lost[sm.Block]
			lost[sm.Block] = !sm.Counts() && (before || !known)
		}
	}
	return lost
}

// String is one line: "macvlan/stream: skipped: this kernel has no macvlan".
func (t Trouble) String() string {
	parts := []string{t.Scenario, t.What}
	if t.Kind != "" {
		parts[1] += " (" + string(t.Kind) + ")"
	}
	return strings.Join(append(parts, t.Reason), ": ")
}
