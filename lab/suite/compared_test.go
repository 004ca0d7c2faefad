package suite

import (
	"fmt"
	"testing"
)

func TestScenariosThatAreComparedMakeAGroup(t *testing.T) {
	p := &Plan{
		Comparisons: []Comparison{{Baseline: "e", Subject: "d"}, {Baseline: "gone", Subject: "f"}},
		Ladders:     []Ladder{{Steps: []string{"b", "c", "d"}}},
		Hypotheses:  []Hypothesis{{Subjects: []string{"f", "g"}}, {Baseline: "h", Subjects: []string{"i"}}},
		Published:   []Published{{Scenario: "j", Baseline: "h"}, {Scenario: "f"}},
	}
	for _, id := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"} {
		p.Scenarios = append(p.Scenarios, Scenario{ID: id})
	}
	// f and g have a hypothesis on the value of each, so nothing compares them.
	if got, want := fmt.Sprint(p.Compared()), "[[a] [b c d e] [f] [g] [h i j]]"; got != want {
		t.Errorf("groups %s, want %s", got, want)
	}
}
