// Package rejected counts the attempts that count and those that do not, and says why a
// trial or a scenario has no figures. Package validity decides whether an attempt counts,
// when the attempt ends.
package rejected

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"windtunnel/internal/phrase"
	"windtunnel/lab/report/figures"
	"windtunnel/lab/report/model"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// Count returns how many attempts of a run are valid, and how many trials of each scenario have no valid
// attempt. samples has the attempts at every CPU distance. Trials of a skipped scenario are not missing.
func Count(plan *suite.Plan, skipped map[string]string, samples []sample.Sample) (v model.Validity) {
	var failed Counts
	cells := figures.Group(*plan, samples, sample.Throughput)
	for i := range samples {
		if plan.Matrix != nil || cells[samples[i].Scenario] != nil { // a plan with a matrix lists no scenarios
			add(&v, &samples[i], &failed)
		}
	}
	for id, c := range cells {
		if n := plan.Trials - len(c.Counting); n > 0 && skipped[id] == "" {
			if v.Missing == nil {
				v.Missing = make(map[string]int)
			}
			v.Missing[id] = n
		}
	}
	v.Gates = failed.ordered()
	return v
}

func add(v *model.Validity, s *sample.Sample, failed *Counts) {
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
		failed.add(s.Gates)
	default:
		v.Valid++
		if conditions := ofOutcome(s.Flags, false); len(conditions) > 0 {
			v.Warned++
			failed.add(conditions)
		}
	}
}

// ofOutcome returns the checks of outcomes if outcome is true, else the checks of
// conditions.
func ofOutcome(gates []sample.Gate, outcome bool) []sample.Gate {
	return slices.DeleteFunc(slices.Clone(gates), func(g sample.Gate) bool { return g.Name.Outcome() != outcome })
}

// Flags counts the flags of the trials that count. It counts flags of outcomes only.
func Flags(c *figures.Cell) []model.GateCount {
	var counts Counts
	for _, s := range c.Counting {
		counts.add(ofOutcome(s.Flags, true))
	}
	return counts.ordered()
}

// outcomes has the text of each flag in Outcomes. %s is the worst figure.
var outcomes = map[sample.GateName]string{
	sample.Unsteady:    "had an unsteady rate (by up to %s)",
	sample.OffTarget:   "sent less than requested (as little as %s of the requested rate)",
	sample.StillMoving: "had traffic after the tools' end (up to %s of the rate)",
	sample.PacketSize:  "sent packets of another size than requested (the worst: %s of payload)",
	sample.WrongDSCP:   "had frames with another DSCP on the wire (as little as %s of the bytes had the workload's)",
	sample.AboveLoss:   "lost more than their search for the highest rate allowed (up to %s)",
}

// Outcomes returns a line for each flag of the trials that count:
// "vxlan/stream: 7 of 30 trials had an unsteady rate (by up to 26.0 %).".
func Outcomes(r *model.Report) (lines phrase.Lines) {
	for i := range r.Scenarios {
		s := &r.Scenarios[i]
		for _, g := range s.Flags {
			lines.Say("%s: %d of %s "+outcomes[g.Name]+".", s.ID, g.Trials, phrase.Count(s.Trials, "trial"), gateFigure(g.Worst))
		}
	}
	if more := len(lines) - model.MostNamed; r.HostMatrices != nil && more > 0 {
		lines = lines[:model.MostNamed]
		lines.Say("%d further lines on flagged trials are in the JSON report.", more)
	}
	return lines
}

// remedy matches the end of a check's message: the text after the limit.
var remedy = regexp.MustCompile(`(; the (?:limit is|run measures at) [^:]*): .*`)

// Advice says why attempts were rejected and what to do. It is empty if no attempt was
// rejected, or if rejected attempts count.
func Advice(r *model.Report) (lines phrase.Lines) {
	if r.Validity.Gated == 0 || r.Run.Options.Lenient {
		return nil
	}
	for _, g := range r.Validity.Gates {
		lines.Say("%s rejected %s, the worst: %s.", g.Name, phrase.Count(g.Trials, "attempt"), strings.TrimSuffix(g.Worst.Message, "."))
	}
	lenient := "--gates warn"
	if s := r.Run.Status; s == sample.Empty || s == sample.Stopped {
		lenient = "windtunnel run --resume " + r.Run.ID + " --gates warn"
	}
	lines.Say("If the machine cannot be made idle, use `%s`: such attempts then count, with a flag.", lenient)
	return lines
}

// Line returns a sentence such as "47 of 53 attempts count; 4 measured under conditions
// that were not valid (foreign-cpu 3×, worst 31 %; steal 4.2 %) and 2 failed."
func Line(v model.Validity) string {
	if v.Attempts == 0 {
		return "No trial was made."
	}
	all, gates := phrase.Count(v.Attempts, "attempt"), gateList(v.Gates)
	if v.Valid == v.Attempts { // each trial has one attempt
		all = phrase.Count(v.Attempts, "trial")
	}
	text := fmt.Sprintf("%d of %s count", v.Valid, all)
	switch {
	case v.Attempts == 1 && v.Valid == 1 && v.Warned == 0:
		text = "The only trial counts: the conditions were valid"
	case v.Valid == v.Attempts && v.Warned == 0:
		text = "All " + all + " count: none failed, and the conditions were valid in every one"
	case v.Warned > 0:
		text += fmt.Sprintf(", %d of them in spite of conditions that were not valid", v.Warned)
		if v.Gated == 0 {
			text += " (" + gates + ")"
		}
	}
	var parts phrase.Lines
	if v.Warned > 0 {
		parts.SayIf(v.Gated > 0, "%d left out because of such conditions (of all these attempts: %s)", v.Gated, gates)
	} else {
		parts.SayIf(v.Gated > 0, "%d measured under conditions that were not valid (%s)", v.Gated, gates)
	}
	parts.SayIf(v.Failed > 0, "%d failed", v.Failed)
	parts.SayIf(v.Profiled > 0, "%d more ran with the profiler, which shows where the CPU time goes", v.Profiled)
	if parts != nil {
		text += "; " + phrase.And(parts)
	}
	return text + "."
}

// Lacks returns the reason why the scenario has no figures, such as "was skipped:
// no module" or "has not run"; "" if it has figures.
func Lacks(s *model.Scenario) string {
	switch {
	case s.Trials > 0:
		return ""
	case s.Skipped != "":
		return "was skipped: " + strings.TrimSuffix(s.Skipped, ".")
	case s.Elsewhere > 0:
		return fmt.Sprintf("has no trial that counts at this CPU distance, but %s at another distance", phrase.Count(s.Elsewhere, "trial"))
	}
	return cmp.Or(Unmeasured(s), "has not run")
}

// Unmeasured returns why a scenario that ran has no figures: "could not be measured in 8
// attempts (foreign-cpu 7×, worst 31 %; tool-hung)"; "" if it has figures or never ran.
func Unmeasured(s *model.Scenario) string {
	tries, failed := 0, Counts{}
	for i := range s.Samples {
		if sm := &s.Samples[i]; !sm.Profiled {
			tries++
			failed.add(causes(sm))
		}
	}
	if tries == 0 || s.Trials > 0 || s.Skipped != "" {
		return ""
	}
	return fmt.Sprintf("could not be measured in %s (%s)", phrase.Count(tries, "attempt"), gateList(failed.ordered()))
}
