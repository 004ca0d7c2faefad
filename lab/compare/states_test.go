package compare

import (
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
