package model

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"windtunnel/lab/phrase"
	"windtunnel/lab/sample"
	"windtunnel/lab/units"
)

// validity counts the run's trials. Of a scenario that was skipped nothing is
// missing.
func (b *builder) validity() Validity {
	var v Validity
	worst := make(map[sample.GateName]*GateCount)
	for i := range b.plan.Scenarios {
		id := b.plan.Scenarios[i].ID
		c := b.cells[id]
		for i := range c.samples {
			v.add(&c.samples[i], worst)
		}
		if n := b.plan.Trials - len(c.ok); n > 0 && b.run.Skipped[id] == "" {
			if v.Missing == nil {
				v.Missing = make(map[string]int)
			}
			v.Missing[id] = n
		}
	}
	v.Gates = ordered(worst)
	return v
}

func (v *Validity) add(s *sample.Sample, worst map[sample.GateName]*GateCount) {
	if s.Profiled {
		v.Profiled++
		return
	}
	v.Attempts++
	switch {
	case !s.OK():
		v.Failed++
	case len(s.Gates) > 0:
		v.Gated++
		countGates(s.Gates, worst)
	default:
		v.Valid++
		if conditions := ofOutcome(s.Flags, false); len(conditions) > 0 {
			v.Warned++
			countGates(conditions, worst)
		}
	}
}

// ofOutcome returns the checks of outcomes, or those of conditions.
func ofOutcome(gates []sample.Gate, outcome bool) []sample.Gate {
	return slices.DeleteFunc(slices.Clone(gates), func(g sample.Gate) bool { return g.Name.Outcome() != outcome })
}

// flags counts the outcomes that the scenario's trials that count are flagged
// with.
func (c *cell) flags() []GateCount {
	counts := make(map[sample.GateName]*GateCount)
	for _, s := range c.ok {
		countGates(ofOutcome(s.Flags, true), counts)
	}
	return ordered(counts)
}

// outcomes say what a flag means, with room for the worst figure.
var outcomes = map[sample.GateName]string{
	sample.Unsteady:    "had an unsteady rate (by up to %s)",
	sample.OffTarget:   "sent less than was asked for (as little as %s of it)",
	sample.StillMoving: "had traffic after the tools' end (up to %s of the rate)",
}

// Outcomes are the flags of the scenario's trials that count, a line each:
// "vxlan/stream: 7 of 30 trials had an unsteady rate (by up to 26.0 %).".
func (s *Scenario) Outcomes() []string {
	var lines []string
	for _, g := range s.Flags {
		lines = append(lines, fmt.Sprintf("%s: %d of %s "+outcomes[g.Name]+".", s.ID, g.Trials, phrase.Count(s.Trials, "trial"), gateFigure(g.Worst)))
	}
	return lines
}

// Outcomes are those of every scenario.
func (r *Report) Outcomes() []string {
	var lines []string
	for i := range r.Scenarios {
		lines = append(lines, r.Scenarios[i].Outcomes()...)
	}
	return lines
}

// countGates adds the checks that one trial failed, each once a trial.
func countGates(gates []sample.Gate, into map[sample.GateName]*GateCount) {
	seen := make(map[sample.GateName]bool, len(gates))
	for _, g := range sample.CleanGates(gates) {
		entry := into[g.Name]
		if entry == nil {
			entry = &GateCount{Name: g.Name, Worst: g}
			into[g.Name] = entry
		}
		if !seen[g.Name] {
			entry.Trials++
			seen[g.Name] = true
		}
		if beyond(g) > beyond(entry.Worst) {
			entry.Worst = g
		}
	}
}

// ordered puts the gate that most trials failed first.
func ordered(counts map[sample.GateName]*GateCount) []GateCount {
	var list []GateCount
	for _, g := range counts {
		list = append(list, *g)
	}
	slices.SortFunc(list, func(a, b GateCount) int {
		return cmp.Or(cmp.Compare(b.Trials, a.Trials), cmp.Compare(a.Name, b.Name))
	})
	return list
}

// beyond says how far a gate's figure lies beyond its limit, which may be an
// upper or a lower one.
func beyond(g sample.Gate) float64 {
	far := math.Abs(g.Value - g.Limit)
	if g.Limit != 0 {
		far /= math.Abs(g.Limit)
	}
	return far
}

// String is the check with its worst figure: "foreign-cpu 3×, worst 31 %".
func (g GateCount) String() string {
	text := string(g.Name)
	if g.Trials > 1 {
		text += fmt.Sprintf(" %d×, worst", g.Trials)
	}
	if figure := gateFigure(g.Worst); figure != "" {
		return text + " " + figure
	}
	return strings.TrimSuffix(text, ", worst")
}

// gateFigure prints what a check found, "31 %".
func gateFigure(g sample.Gate) string {
	switch {
	case g.Name == sample.CPUMoved && g.Unit == "%" && g.Value == 0:
		return "no slice at one distance"
	case g.Name == sample.CPUMoved && g.Unit == "%":
		return fmt.Sprintf("only %.0f %% of the slices at one distance", g.Value)
	case g.Name == sample.CPUMoved && g.Limit == 0:
		return "not read"
	case g.Unit == "" && g.Value == 0:
		return ""
	case g.Unit == "s":
		return units.FormatDuration(g.Value * 1e9)
	}
	return scaleOf(g.Unit, g.Value).Print(g.Value)
}

// Brief describes failed checks in a few words: "foreign CPU 46.2 %, compile".
func Brief(gates []sample.Gate) string {
	var parts []string
	for _, g := range gates {
		text := strings.NewReplacer("-", " ", "cpu", "CPU").Replace(string(g.Name)) + " " + gateFigure(g)
		if g.Culprit != "" {
			text += ", " + g.Culprit
		}
		parts = append(parts, strings.TrimSpace(text))
	}
	return strings.Join(parts, "; ")
}

// remedy matches the end of a check's message: the text after the limit.
var remedy = regexp.MustCompile(`(; the limit is [^:]*): .*`)

// Advice says why trials were rejected and what to do. It is empty if no trial was
// rejected, or if rejected trials count.
func (r *Report) Advice() (lines []string) {
	if r.Validity.Gated == 0 || r.Run.Options.Lenient {
		return nil
	}
	for _, g := range r.Validity.Gates {
		lines = append(lines, fmt.Sprintf("%s rejected %s, the worst: %s.", g.Name, phrase.Count(g.Trials, "attempt"), strings.TrimSuffix(g.Worst.Message, ".")))
	}
	lenient := "--gates warn"
	if s := r.Run.Status; s == sample.Empty || s == sample.Stopped {
		lenient = "windtunnel run --resume " + r.Run.ID + " --gates warn"
	}
	return append(lines, "Where the machine cannot be made quiet, `"+lenient+"` counts such trials, each with a flag.")
}

// Line is the run's validity in a sentence: "47 of 53 trials count; 4 were not
// valid (foreign-cpu 3×, worst 31 %; steal 4.2 %), 2 failed".
func (v Validity) Line() string {
	if v.Attempts == 0 {
		return "No trial was made."
	}
	all, gates := phrase.Count(v.Attempts, "trial"), gateList(v.Gates)
	text := fmt.Sprintf("%d of %s count", v.Valid, all)
	switch {
	case v.Attempts == 1 && v.Valid == 1 && v.Warned == 0:
		text = "The only trial counts: the conditions were valid"
	case v.Valid == v.Attempts && v.Warned == 0:
		text = "All " + all + " count: none failed, and the conditions were valid in every one"
	case v.Warned > 0 && v.Gated == 0:
		text += fmt.Sprintf(", %d of them in spite of conditions that were not valid (%s)", v.Warned, gates)
	case v.Warned > 0:
		text += fmt.Sprintf(", %d of them in spite of conditions that were not valid", v.Warned)
	}
	var parts []string
	for _, p := range []struct {
		n    int
		text string
	}{
		{v.Gated, " measured under conditions that were not valid (" + gates + ")"},
		{v.Failed, " failed"},
		{v.Profiled, " more ran with the profiler, which shows where the CPU time goes"},
	} {
		if p.n > 0 {
			parts = append(parts, strconv.Itoa(p.n)+p.text)
		}
	}
	if len(parts) > 0 {
		text += "; " + phrase.And(parts)
	}
	return text + "."
}

func gateList(gates []GateCount) string {
	var parts []string
	for _, g := range gates {
		parts = append(parts, g.String())
	}
	return strings.Join(parts, "; ")
}

// Lacks returns the reason why the scenario has no figures, such as "was skipped:
// no module" or "has not run"; "" if it has figures.
func (s *Scenario) Lacks() string {
	switch {
	case s.Trials > 0:
		return ""
	case s.Skipped != "":
		return "was skipped: " + strings.TrimSuffix(s.Skipped, ".")
	}
	return cmp.Or(s.Unmeasured(), "has not run")
}

// Unmeasured says why a scenario that ran has no figures at all: "could not be
// measured in 8 trials (foreign-cpu 7×, worst 31 %; tool-hung)"; empty where it has
// figures, or never ran.
func (s *Scenario) Unmeasured() string {
	tries, causes := 0, make(map[sample.GateName]*GateCount)
	for i := range s.Samples {
		sm := &s.Samples[i]
		if sm.Profiled {
			continue
		}
		if tries++; sm.OK() {
			countGates(sm.Gates, causes)
		} else {
			countGates([]sample.Gate{{Name: sample.GateName(sm.Failure.Kind)}}, causes)
		}
	}
	if tries == 0 || s.Trials > 0 || s.Skipped != "" {
		return ""
	}
	return fmt.Sprintf("could not be measured in %s (%s)", phrase.Count(tries, "trial"), gateList(ordered(causes)))
}
