package report

import (
	"fmt"
	"slices"
	"strings"

	"windtunnel/lab/sample"
)

// Trouble is why a scenario, or some of its trials, has no figures.
type Trouble struct {
	Scenario string
	What     string // "skipped", "1 of 6 trials has no figures", "2 trials were repeated"
	Kind     sample.FailureKind
	Reason   string // what was attempted, on what, and the remedy
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

// failures groups a scenario's failed attempts by kind and message: first those
// that left a block without figures, then those that a repeat made good.
func (s *Scenario) failures() []Trouble {
	type reason struct {
		lost bool
		kind sample.FailureKind
		text string
	}
	lost := s.lostBlocks()
	var order []reason
	blocks := make(map[reason][]int)
	for i := range s.Samples {
		sm := &s.Samples[i]
		if sm.OK() {
			continue
		}
		k := reason{lost[sm.Block], sm.Failure.Kind, sm.Failure.Message}
		if blocks[k] == nil {
			order = append(order, k)
		}
		if !slices.Contains(blocks[k], sm.Block) {
			blocks[k] = append(blocks[k], sm.Block)
		}
	}
	slices.SortStableFunc(order, func(a, b reason) int {
		if a.lost == b.lost {
			return 0
		} else if a.lost {
			return -1
		}
		return 1
	})
	var list []Trouble
	for _, k := range order {
		what := "repeated " + count(len(blocks[k]), "trial")
		if k.lost {
			what = fmt.Sprintf("%d of %s without figures", len(blocks[k]), count(s.Trials+s.Failed, "trial"))
		}
		list = append(list, Trouble{Scenario: s.ID, What: what, Kind: k.kind, Reason: k.text})
	}
	return list
}

// lostBlocks are the blocks whose last attempt failed.
func (s *Scenario) lostBlocks() map[int]bool {
	last := make(map[int]*sample.Sample)
	for i := range s.Samples {
		sm := &s.Samples[i]
		if before := last[sm.Block]; before == nil || sm.Attempt >= before.Attempt {
			last[sm.Block] = sm
		}
	}
	lost := make(map[int]bool)
	for block, sm := range last {
		lost[block] = !sm.OK()
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
