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

// judgementMark returns the mark of a hypothesis: ✓ holds, ✗ refuted, ? undecided.
func judgementMark(j model.Judgement) mark {
	sign := map[model.Judgement]string{model.Holds: "✓", model.Refuted: "✗", model.Undecided: "?"}[j]
	return mark{Sign: sign, Word: string(j), Class: string(j)}
}
