package html

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"windtunnel/internal/phrase"
	"windtunnel/lab/report/rejected"
	"windtunnel/lab/sample"
)

// validity has the line that says how many trials count, and a table of the other trials.
type validity struct {
	Line    string
	Clean   bool // every trial counts, so the table is empty
	Warned  bool // some trials count although the conditions were not valid
	Rows    []invalidTrial
	More    int // trials that failed a gate and are not listed
	Missing []string
	Flags   []string // texts on the flags of trials that count, then advice
}

// invalidTrial is a trial that does not count.
type invalidTrial struct {
	Scenario, Trial, What, Why string
}

// mostInvalid limits the trials in the table.
const mostInvalid = 200

// validity returns nil if an older version, without gates, measured the run.
func (b *builder) validity() *validity {
	v := b.r.Validity
	if v.Attempts == 0 {
		return nil
	}
	out := &validity{Line: rejected.Line(v), Clean: v.Valid == v.Attempts && len(v.Missing) == 0, Warned: v.Warned > 0, Flags: append(rejected.Outcomes(b.r), rejected.Advice(b.r)...)}
	for i := range b.r.Scenarios {
		for j := range b.r.Scenarios[i].Samples {
			if s := &b.r.Scenarios[i].Samples[j]; !s.Profiled && !s.Counts() {
				out.add(b.r.Scenarios[i].ID, s)
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(v.Missing)) {
		out.Missing = append(out.Missing, fmt.Sprintf("%s lacks %s.", id, phrase.Count(v.Missing[id], "planned block")))
	}
	return out
}

func (v *validity) add(scenario string, s *sample.Sample) {
	if len(v.Rows) == mostInvalid {
		v.More++
		return
	}
	if !s.OK() {
		v.Rows = append(v.Rows, invalidTrial{scenario, trialName(s), string(s.Failure.Kind), s.Failure.Message})
		return
	}
	var names, messages []string
	for _, g := range s.Gates {
		names, messages = append(names, string(g.Name)), append(messages, g.Message)
	}
	v.Rows = append(v.Rows, invalidTrial{scenario, trialName(s), strings.Join(names, ", "), strings.Join(messages, "; ")})
}
