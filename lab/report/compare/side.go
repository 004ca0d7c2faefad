// Package compare compares two runs scenario by scenario: the differences of
// their environments, ratios with interval and corrected p-value, and the
// results of gates. It also follows one metric through many runs.
package compare

import (
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// Side is everything that is known of one run. This package does not change it.
type Side struct {
	Run     sample.Run
	Plan    suite.Plan
	Samples []sample.Sample
}

// same reports whether both sides are one run, perhaps from two copies of a
// store.
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
