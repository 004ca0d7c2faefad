package html

import "windtunnel/lab/report/model"

// agreementMark returns the mark of a published figure's agreement with the measured
// one: = ± ≠ ? or ….
func agreementMark(a model.Agreement) mark {
	class := map[model.Agreement]string{
		model.SameMagnitude: "holds", model.OtherMagnitude: "alike", model.Disagrees: "refuted",
		model.Unsettled: "undecided", model.TooFewToTell: "few",
	}[a]
	return mark{Sign: a.Sign(), Word: string(a), Class: class}
}

// judgementMark returns the mark of a hypothesis: ✓ holds, ✗ refuted, ? undecided or cannot
// be judged here.
func judgementMark(j model.Judgement) mark {
	m := map[model.Judgement]mark{model.Holds: {Sign: "✓", Class: "holds"}, model.Refuted: {Sign: "✗", Class: "refuted"}, model.Undecided: {Sign: "?", Class: "undecided"}, model.NotHere: {Sign: "?", Class: "undecided"}}[j]
	m.Word = string(j)
	return m
}
