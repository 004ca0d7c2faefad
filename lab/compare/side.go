// Package compare sets two runs beside each other, scenario by scenario, and
// judges the differences: what surrounded each run first, then ratios with
// interval and corrected p-value, then the gates that a person sets. It also
// follows one metric through many runs. It does no I/O but to the writers that
// it is given.
package compare

import (
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// Side is everything known of one of two runs. Nothing of it is changed.
type Side struct {
	Run     sample.Run
	Plan    suite.Plan
	Samples []sample.Sample
}

// same reports whether both sides are one run, be it from two copies of a store.
func (s *Side) same(other *Side) bool {
	return s.Run.ID == other.Run.ID && s.Run.Started.Equal(other.Run.Started) && s.Run.Seed == other.Run.Seed
}

func (s *Side) scenario(id string) *suite.Scenario {
	for i := range s.Plan.Scenarios {
		if s.Plan.Scenarios[i].ID == id {
			return &s.Plan.Scenarios[i]
		}
	}
	return nil
}
