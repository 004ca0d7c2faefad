package sentences

import (
	"strings"

	"windtunnel/internal/phrase"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/report/rejected"
	"windtunnel/lab/sample"
)

// Conditions returns sentences about the state of the machine in which the
// figures hold, and about the limits of the traffic. It returns none if no trial
// counts.
func Conditions(r *model.Report) (lines phrase.Lines) {
	if r.Validity.Valid == 0 {
		return nil
	}
	c := &r.Conditions
	state := State(c)
	lines.SayIf(state != "", "%s", state)
	for _, e := range r.Elsewhere {
		trials := 0
		for i := range e.Scenarios {
			trials += e.Scenarios[i].Trials
		}
		where := "a separate table shows their figures"
		if e.Few() {
			where = "too few for intervals; the HTML report has a table of their figures"
		}
		lines.Say("%s counted with the CPUs %.0f ns from each other: %s.", phrase.Count(trials, "trial"), e.Distance, where)
	}
	lines.SayIf(c.Adjusted, "The host changed the state of this machine too often to measure in one, and took its CPUs away in %.0f %% of the time: the figures are adjusted to that distance and to no steal, by a regression over slices of 100 ms. Ratios are less certain than on a machine with CPUs of its own.", 100*c.Stolen)
	for _, why := range leftOut {
		share := c.LeftOut[why.reason]
		lines.SayIf(share > 0, "The figures leave out %s of the measured time because %s.", quantity.Percentage(share), why.text)
	}
	var by phrase.Groups // scenarios by limit
	for i := range r.Scenarios {
		if s := &r.Scenarios[i]; s.Limit != "" {
			by.Add(string(s.Limit), s.ID+s.ShareOfLimit(" of its trials"))
		}
	}
	var limits []string
	for limit, scenarios := range by.All() {
		limits = append(limits, limit+": "+phrase.Some(scenarios, model.MostNamed))
	}
	lines.SayIf(limits != nil, "What limited the traffic: %s.", strings.Join(limits, "; "))
	return lines
}

// State returns a sentence with the CPU distance and the rate of memory copies at which the trials ran; "" if neither was measured.
func State(c *model.Conditions) string {
	var parts, others phrase.Lines
	for _, d := range c.Distances {
		others.SayIf(!d.Shown, "%.0f ns for %.0f %% of the time", d.Median, 100*d.Share)
		parts.SayIf(d.Shown && (d.Trials > 0 || c.Adjusted), "the nodes' CPUs %.0f ns from each other", d.Median)
	}
	if parts != nil && others != nil {
		parts[0] += " (the host also had them at " + phrase.And(others) + ")"
	}
	if c.MemoryCopy != nil {
		parts.Say("memory copied at %.1f GB/s", c.MemoryCopy.Median/8e9)
	}
	if parts == nil {
		return ""
	}
	return "The figures hold for " + phrase.And(parts) + "."
}

// leftOut lists the reasons for which figures leave out slices.
var leftOut = []struct {
	reason sample.LeftOut
	text   string
}{
	{sample.StolenSlice, "the host ran other guests on the nodes' CPUs (steal)"},
	{sample.DistantSlice, "the host moved the nodes' CPUs to another distance within the trial"},
}

// Several lists names for a sentence. Of more than model.MostNamed it names the first ones.
func Several(names []string) string {
	if len(names) > model.MostNamed {
		return phrase.Some(names, model.MostNamed)
	}
	return phrase.And(names)
}

// Validity states how many attempts count, which planned trials are missing,
// whether the precision was reached, and what to do about rejected attempts.
func Validity(r *model.Report) []string {
	if r.Validity.Attempts == 0 {
		return nil
	}
	lines := phrase.Lines{rejected.Line(r.Validity)}
	var missing phrase.Lines
	for i := range r.Scenarios {
		id := r.Scenarios[i].ID
		missing.SayIf(r.Validity.Missing[id] > 0, "%s %d", id, r.Validity.Missing[id])
	}
	lines.SayIf(missing != nil, "Planned trials without figures that count: %s.", phrase.Some(missing, model.MostNamed))
	lines = append(lines, rejected.Outcomes(r)...)
	if r.Precision != nil {
		lines = append(lines, r.Precision.Why)
	}
	return append(lines, rejected.Advice(r)...)
}

// Hypotheses writes each hypothesis as "holds: the claim. The figures."
func Hypotheses(r *model.Report) (lines phrase.Lines) {
	for _, h := range r.Hypotheses {
		lines.Say("%s: %s. %s", h.Judgement, strings.TrimSuffix(h.Claim, "."), h.Why)
	}
	return lines
}
