package rejected

import (
	"fmt"
	"slices"
	"strings"

	"windtunnel/internal/phrase"
	"windtunnel/lab/report/model"
	"windtunnel/lab/sample"
)

// Trouble is a reason why a scenario, or some of its trials, has no figures.
type Trouble struct {
	Scenario string
	What     string             // "skipped", "1 of 6 trials has no figures", "2 trials were repeated"
	Kind     sample.FailureKind // of the failure, or the gate's name
	Reason   string             // error message with the remedy; or the figure that failed the gate
}

// Troubles lists the skipped scenarios and the failed trials, in the order of the
// scenarios. Each reason occurs once for each scenario. The troubles of a run between
// pairs of hosts are in the notes.
func Troubles(r *model.Report) []Trouble {
	var list []Trouble
	if r.HostMatrices != nil {
		return nil
	}
	for i := range r.Scenarios {
		s := &r.Scenarios[i]
		if s.Skipped != "" {
			list = append(list, Trouble{Scenario: s.ID, What: "skipped", Reason: s.Skipped})
		}
		list = append(list, failures(s)...)
	}
	return list
}

// failures returns the reasons why attempts of a scenario do not count. Reasons for blocks
// without any attempt that counts come first. Failures with the same message are one
// reason. Failed gates with the same name are one reason too, although their messages
// have different figures; the text is the message with the worst figure.
func failures(s *model.Scenario) (list []Trouble) {
	var groups []*failureGroup
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
			key := failureGroup{lost: !kept[sm.Block], gate: sm.OK(), worst: g}
			at := slices.IndexFunc(groups, func(o *failureGroup) bool { return o.alike(&key) })
			if at < 0 {
				at, groups = len(groups), append(groups, &key)
			}
			groups[at].add(sm.Block, g)
		}
	}
	slices.SortStableFunc(groups, func(a, b *failureGroup) int { return model.After(!a.lost, !b.lost) })
	for _, w := range groups {
		list = append(list, w.trouble(s))
	}
	return list
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
	lost   bool // no attempt of the blocks counts
	gate   bool // the reason is a gate, not a failure
	blocks []int
	worst  sample.Gate
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

func (w *failureGroup) trouble(s *model.Scenario) Trouble {
	t := Trouble{Scenario: s.ID, What: "repeated " + phrase.Count(len(w.blocks), "trial"), Kind: sample.FailureKind(w.worst.Name), Reason: w.worst.Message}
	how := "without figures"
	if w.gate {
		how = "left out as not valid"
		t.Reason = remedy.ReplaceAllString(t.Reason, "$1") // Advice has the remedy
		if len(w.blocks) > 1 {
			t.Reason = "worst: " + t.Reason
		}
	}
	if w.lost {
		t.What = fmt.Sprintf("%d of %s %s", len(w.blocks), phrase.Count(s.Trials+s.Failed, "trial"), how)
	}
	return t
}

// String is one line: "macvlan/stream: skipped: this kernel has no macvlan".
func (t Trouble) String() string {
	parts := []string{t.Scenario, t.What}
	if t.Kind != "" {
		parts[1] += " (" + string(t.Kind) + ")"
	}
	return strings.Join(append(parts, t.Reason), ": ")
}
