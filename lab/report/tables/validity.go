package tables

import (
	"strings"

	"windtunnel/internal/phrase"
	"windtunnel/lab/report/document"
	"windtunnel/lab/report/model"
)

// mostInvalid limits the attempts in the table.
const mostInvalid = 200

// Invalid lists the attempts that do not count, and the figures without the wanted precision.
func Invalid(r *model.Report) []document.Section {
	attempts := document.Section{Title: "Attempts that do not count, and why", Reference: true}
	t := document.Table{Columns: document.Words("scenario", "trial", "what", "why")}
	more := 0
	for i := range r.Scenarios {
		for j := range r.Scenarios[i].Samples {
			s := &r.Scenarios[i].Samples[j]
			switch {
			case s.Profiled || s.Counts() || r.Validity.Valid == r.Validity.Attempts:
			case len(t.Rows) == mostInvalid:
				more++
			case !s.OK():
				t.Add(r.Scenarios[i].ID, s.Trial(), string(s.Failure.Kind), s.Failure.Message)
			default:
				var names, messages []string
				for _, g := range s.Gates {
					names, messages = append(names, string(g.Name)), append(messages, g.Message)
				}
				t.Add(r.Scenarios[i].ID, s.Trial(), strings.Join(names, ", "), strings.Join(messages, "; "))
			}
		}
	}
	attempts.Tables = t.List()
	if more > 0 {
		attempts.Notes = []string{phrase.Count(more, "attempt") + " more: the report as JSON lists all."}
	}
	imprecise := document.Section{Title: "Figures without the wanted precision", Reference: true}
	if r.Precision != nil {
		for _, w := range r.Precision.Widest {
			imprecise.Sentences = append(imprecise.Sentences, w.String())
		}
	}
	return []document.Section{attempts, imprecise}
}

// judged maps each judgement to its sign and its CSS class.
var judged = map[model.Judgement][2]string{
	model.Holds: {"✓", "holds"}, model.Refuted: {"✗", "refuted"}, model.Undecided: {"?", "undecided"},
	model.NotHere: {"?", "undecided"}, model.ByConstruction: {"≡", "undecided"},
}

// Hypotheses returns the hypotheses with their verdicts. A note has the figures.
func Hypotheses(r *model.Report) []document.Table {
	t := document.Table{Columns: document.Words("verdict", "asked", "claim")}
	for _, h := range r.Hypotheses {
		sign := judged[h.Judgement]
		row := t.Add(sign[0]+" "+string(h.Judgement), h.Printed, h.Claim)
		row.Cells[0].Tone, row.Notes = sign[1], []string{h.Why}
	}
	return t.List()
}
