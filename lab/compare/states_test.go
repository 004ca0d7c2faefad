package compare

import (
	"slices"
	"strings"
	"testing"

	"windtunnel/lab/sample"
)

func TestRunsInDifferentStatesOfTheMachineAreSaid(t *testing.T) {
	side := func(distance, copied float64) group {
		s := &sample.Sample{Metrics: sample.Metrics{sample.CPUDistance: distance, sample.MemoryCopy: copied}}
		return group{{cells: map[string][]*sample.Sample{"raw/stream": {s}}}}
	}
	for _, c := range []struct {
		a, b group
		want []string
	}{
		{side(52, 80e9), side(60, 90e9), nil},
		{side(52, 80e9), side(335, 80e9), []string{"52 ns from each other for A and 335 ns for B"}},
		{side(52, 160e9), side(52, 64e9), []string{"20.0 GB/s for A and 8.0 GB/s for B"}},
		{side(52, 160e9), side(335, 64e9), []string{"52 ns", "8.0 GB/s"}},
		{side(52, 160e9), group{}, nil},
	} {
		notes := (&pairing{a: c.a, b: c.b}).stateNotes()
		if (len(notes) == 0) != (len(c.want) == 0) {
			t.Errorf("notes %q, want %q", notes, c.want)
		}
		for _, w := range c.want {
			if !strings.Contains(strings.Join(notes, " "), w) {
				t.Errorf("notes %q lack %q", notes, w)
			}
		}
	}
}

func TestTrialsCountedInSpiteOfTheirConditionsAreSaid(t *testing.T) {
	gate := func(names ...sample.GateName) (list []sample.Gate) {
		for _, n := range names {
			list = append(list, sample.Gate{Name: n})
		}
		return list
	}
	trials := []*sample.Sample{{Flags: gate(sample.ForeignCPU, sample.Unsteady)}, {Flags: gate(sample.Unsteady)}, {Flags: gate(sample.Steal, sample.ForeignCPU)}, {}}
	c := &columns{side: &Side{}, cells: map[string][]*sample.Sample{"raw/stream": trials}}
	if n, what := c.warned(); n != 2 || what != "foreign-cpu, steal" {
		t.Errorf("%d trials (%s), want 2 (foreign-cpu, steal)", n, what)
	}
	c.side.Run.Options.Adjusted = true // steal is adjusted for
	c.cells["raw/stream"] = []*sample.Sample{{Flags: gate(sample.Steal)}}
	if n, what := c.warned(); n != 0 {
		t.Errorf("adjusted: %d trials (%s), want none", n, what)
	}
}

func TestOtherChoicesOfTheRunsAreDifferences(t *testing.T) {
	got := options(sample.Options{}, sample.Options{Lenient: true, CPUDistance: "far"})
	want := []Difference{{Name: "--gates", A: "enforce", B: "warn"}, {Name: "--cpu-distance", A: "auto", B: "far"}}
	if !slices.Equal(got, want) {
		t.Errorf("differences %+v, want %+v", got, want)
	}
	if same := options(sample.Options{}, sample.Options{CPUDistance: "auto"}); same != nil {
		t.Errorf("equal choices differ in %+v", same)
	}
}
