package model

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

// failures groups a scenario's attempts that do not count by their reason. First
// come attempts that left a block without figures, then attempts with a successful
// repeat. Failures with one message are a group, and so are gates with one name: a
// gate's message has the figures of one trial. The worst message is shown.
func (s *Scenario) failures() (list []Trouble) {
	var order []*failureGroup
	index := make(map[failureKey]*failureGroup)
	lost := s.lostBlocks()
	for i := range s.Samples {
		sm := &s.Samples[i]
		if sm.Profiled || sm.Counts() {
			continue
		}
		causes, text := sm.Gates, ""
		if !sm.OK() {
			text = sm.Failure.Message
			causes = []sample.Gate{{Name: sample.GateName(sm.Failure.Kind), Message: text}}
		}
		for _, g := range causes {
			k := failureKey{lost[sm.Block], g.Name, text}
			w := index[k]
			if w == nil {
				w = &failureGroup{failureKey: k, gate: sm.OK(), worst: g}
				index[k], order = w, append(order, w)
			}
			if !slices.Contains(w.blocks, sm.Block) {
				w.blocks = append(w.blocks, sm.Block)
			}
			if beyond(g) > beyond(w.worst) {
				w.worst = g
			}
		}
	}
	slices.SortStableFunc(order, func(a, b *failureGroup) int { return cmp.Compare(after(!a.lost), after(!b.lost)) })
	for _, w := range order {
		list = append(list, w.trouble(s))
	}
	return list
}

// failureGroup has the blocks of a scenario in which attempts do not count for one reason.
type failureGroup struct {
	failureKey
	gate   bool // the reason is a gate, not a failure
	blocks []int
	worst  sample.Gate
}

type failureKey struct {
	lost bool
	kind sample.GateName
	text string
}

func (w *failureGroup) trouble(s *Scenario) Trouble {
	t := Trouble{Scenario: s.ID, What: "repeated " + phrase.Count(len(w.blocks), "trial"), Kind: sample.FailureKind(w.kind), Reason: w.worst.Message}
	if w.lost {
		how := "without figures"
		if w.gate {
			how = "left out as not valid"
		}
		t.What = fmt.Sprintf("%d of %s %s", len(w.blocks), phrase.Count(s.Trials+s.Failed, "trial"), how)
	}
	if w.gate {
		t.Reason = remedy.ReplaceAllString(t.Reason, "$1") // Advice has the remedy
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
