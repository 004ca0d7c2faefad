package html

import (
	"strings"

	"windtunnel/lab/report/model"
	"windtunnel/lab/sample"
)

// validity has the attempts that do not count, and the figures without the wanted precision.
type validity struct {
	Clean  bool // every attempt counts, under valid conditions
	Rows   []invalidAttempt
	More   int // attempts that do not count and are not listed
	Widest []model.Imprecise
}

// invalidAttempt is an attempt that does not count.
type invalidAttempt struct {
	Scenario, Trial, What, Why string
}

// mostInvalid limits the attempts in the table.
const mostInvalid = 200

// validity returns nil if an older version, without gates, measured the run.
func (b *builder) validity() *validity {
	v := b.r.Validity
	if v.Attempts == 0 {
		return nil
	}
	out := &validity{Clean: v.Valid == v.Attempts && len(v.Missing)+v.Warned == 0}
	if b.r.Precision != nil {
		out.Widest = b.r.Precision.Widest
	}
	if v.Valid == v.Attempts {
		return out
	}
	for i := range b.r.Scenarios {
		for j := range b.r.Scenarios[i].Samples {
			if s := &b.r.Scenarios[i].Samples[j]; !s.Profiled && !s.Counts() {
				out.add(b.r.Scenarios[i].ID, s)
			}
		}
	}
	return out
}

func (v *validity) add(scenario string, s *sample.Sample) {
	if len(v.Rows) == mostInvalid {
		v.More++
		return
	}
	if !s.OK() {
		v.Rows = append(v.Rows, invalidAttempt{scenario, trialName(s), string(s.Failure.Kind), s.Failure.Message})
		return
	}
	var names, messages []string
	for _, g := range s.Gates {
		names, messages = append(names, string(g.Name)), append(messages, g.Message)
	}
	v.Rows = append(v.Rows, invalidAttempt{scenario, trialName(s), strings.Join(names, ", "), strings.Join(messages, "; ")})
}
