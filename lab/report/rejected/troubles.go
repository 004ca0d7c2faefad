package rejected

import (
	"fmt"
	"slices"
	"strings"

	"windtunnel/internal/lists"
	"windtunnel/internal/phrase"
	"windtunnel/lab/report/model"
	"windtunnel/lab/sample"
)

// Trouble is a reason why a scenario, or some trials of one or more scenarios, have no figures.
type Trouble struct {
	Scenario string             // empty if there are several; Reason then lists them
	What     string             // "skipped", "1 of 6 trials has no figures", "2 trials were repeated"
	Kind     sample.FailureKind // of the failure, or the gate's name
	Reason   string             // error message with the remedy; or the figure that failed the gate
}

// Troubles lists the skipped scenarios and the failed trials, in the order of the
// scenarios. Then it lists the trials that failed a gate: one trouble for each gate, with
// all its scenarios. Other reasons occur once for each scenario. The troubles of a run
// between pairs of hosts are in the notes.
func Troubles(r *model.Report) []Trouble {
	var list []Trouble
	if r.HostMatrices != nil {
		return nil
	}
	var gates [][]*failureGroup
	for i := range r.Scenarios {
		s := &r.Scenarios[i]
		if s.Skipped != "" {
			list = append(list, Trouble{Scenario: s.ID, What: "skipped", Reason: s.Skipped})
		}
		for _, w := range failures(s) {
			at := slices.IndexFunc(gates, func(o []*failureGroup) bool { return o[0].alike(w) })
			switch {
			case !w.gate:
				list = append(list, w.trouble())
			case at < 0:
				gates = append(gates, []*failureGroup{w})
			default:
				gates[at] = append(gates[at], w)
			}
		}
	}
	slices.SortStableFunc(gates, func(a, b []*failureGroup) int { return model.After(!a[0].lost, !b[0].lost) })
	return append(list, lists.Map(gates, together)...)
}

// failures returns the reasons why attempts of a scenario do not count. Reasons for blocks
// without any attempt that counts come first. Failures with the same message are one
// reason. Failed gates with the same name are one reason too, although their messages
// have different figures; the text is the message with the worst figure.
func failures(s *model.Scenario) (groups []*failureGroup) {
	kept := make(map[int]bool) // blocks with an attempt that counts
	for i := range s.Samples {
		kept[s.Samples[i].Block] = kept[s.Samples[i].Block] || s.Samples[i].Counts()
	}
	for i := range s.Samples {
		sm := &s.Samples[i]
		if sm.Profiled || sm.Counts() {
			continue
		}
		for _, g := range causes(sm) {
			key := failureGroup{scenario: s, lost: !kept[sm.Block], gate: sm.OK(), worst: g}
			at := slices.IndexFunc(groups, func(o *failureGroup) bool { return o.alike(&key) })
			if at < 0 {
				at, groups = len(groups), append(groups, &key)
			}
			groups[at].add(sm.Block, g)
		}
	}
	slices.SortStableFunc(groups, func(a, b *failureGroup) int { return model.After(!a.lost, !b.lost) })
	return groups
}

// causes lists the reasons why an attempt does not count: its gates, or its failure as a
// gate.
func causes(s *sample.Sample) []sample.Gate {
	if s.OK() {
		return s.Gates
	}
	return []sample.Gate{{Name: sample.GateName(s.Failure.Kind), Message: s.Failure.Message}}
}

// failureGroup has the blocks of a scenario in which attempts do not count for one reason.
type failureGroup struct {
	scenario *model.Scenario
	lost     bool // no attempt of the blocks counts
	gate     bool // the reason is a gate, not a failure
	blocks   []int
	worst    sample.Gate
}

// alike reports whether both groups have the same reason.
func (w *failureGroup) alike(o *failureGroup) bool {
	return w.lost == o.lost && w.worst.Name == o.worst.Name && w.gate == o.gate && (w.gate || w.worst.Message == o.worst.Message)
}

func (w *failureGroup) add(block int, g sample.Gate) {
	if !slices.Contains(w.blocks, block) {
		w.blocks = append(w.blocks, block)
	}
	if beyond(g) > beyond(w.worst) {
		w.worst = g
	}
}

func (w *failureGroup) trouble() Trouble {
	t := Trouble{Scenario: w.scenario.ID, What: "repeated " + phrase.Count(len(w.blocks), "trial"), Kind: sample.FailureKind(w.worst.Name), Reason: w.worst.Message}
	how := "without figures"
	if w.gate {
		how = leftOut
		t.Reason = remedy.ReplaceAllString(t.Reason, "$1") // Advice has the remedy
		if len(w.blocks) > 1 {
			t.Reason = "worst: " + t.Reason
		}
	}
	if w.lost {
		t.What = fmt.Sprintf("%d of %s %s", len(w.blocks), phrase.Count(w.trials(), "trial"), how)
	}
	return t
}

const leftOut = "left out as not valid"

// trials returns how many trials the scenario has.
func (w *failureGroup) trials() int { return w.scenario.Trials + w.scenario.Failed }

// together returns one trouble for the groups of several scenarios that failed the same gate.
func together(groups []*failureGroup) Trouble {
	if len(groups) == 1 {
		return groups[0].trouble()
	}
	all, worst := 0, groups[0]
	var each phrase.Lines
	for _, w := range groups {
		all += len(w.blocks)
		if w.lost {
			each.Say("%s %d of %d", w.scenario.ID, len(w.blocks), w.trials())
		} else {
			each.Say("%s %d", w.scenario.ID, len(w.blocks))
		}
		if beyond(w.worst) > beyond(worst.worst) {
			worst = w
		}
	}
	t := worst.trouble()
	t.Scenario, t.What = "", "repeated "+phrase.Count(all, "trial")
	if worst.lost {
		t.What = phrase.Count(all, "trial") + " " + leftOut
	}
	t.Reason = phrase.Some(each, model.MostNamed) + "; worst: " + strings.TrimPrefix(t.Reason, "worst: ")
	return t
}

// String is one line: "macvlan/stream: skipped: this kernel has no macvlan".
func (t Trouble) String() string {
	what := t.What
	if t.Kind != "" {
		what += " (" + string(t.Kind) + ")"
	}
	parts := []string{t.Scenario, what, t.Reason}
	if t.Scenario == "" {
		parts = parts[1:]
	}
	return strings.Join(parts, ": ")
}
