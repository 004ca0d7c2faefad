package html

import "windtunnel/lab/report/model"

// agreed returns the sign, word and CSS class of an agreement.
func agreed(a model.Agreement) mark {
	class := map[model.Agreement]string{
		model.SameMagnitude: "holds", model.OtherMagnitude: "alike", model.Disagrees: "refuted",
		model.Unsettled: "undecided", model.TooFewToTell: "few",
	}[a]
	return mark{Sign: a.Sign(), Word: string(a), Class: class}
}

// judged returns the sign, word and CSS class of a judgement.
func judged(j model.Judgement) mark {
	sign := map[model.Judgement]string{model.Holds: "✓", model.Refuted: "✗", model.Undecided: "?"}[j]
	return mark{Sign: sign, Word: string(j), Class: string(j)}
}
