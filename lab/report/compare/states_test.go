package compare

import (
	"slices"
	"strings"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/lab/sample"
)

func TestRunsInDifferentStatesOfTheMachineAreReported(t *testing.T) {
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

func TestTrialsCountedInSpiteOfTheirConditionsAreReported(t *testing.T) {
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
	want := []Difference{{Name: "--gates", A: "enforce", B: "warn", Trials: true}, {Name: "--cpu-distance", A: "auto", B: "far", Trials: true}}
	must.Equal(t, want, got)
	if same := options(sample.Options{}, sample.Options{CPUDistance: "auto"}); same != nil {
		t.Errorf("equal choices differ in %+v", same)
	}
}

// Side b counts trials at every CPU distance; side a repeats those at the far one.
// So b is slower with the same software.
func TestRunsThatCountDifferentTrialsAreNotDecided(t *testing.T) {
	a := made{id: "a", blocks: 12, seed: 1, noise: 0.01}.runs()
	b := made{id: "b", blocks: 12, seed: 2, noise: 0.01, scale: map[string]float64{"bridge/stream": 0.8}}.runs()
	for i := range b {
		b[i].Run.Options.CPUDistance = "off"
	}
	c, err := Runs(a, b, Options{})
	must.Succeed(t, err)
	for _, rows := range [][]Row{c.Values, c.Ratios} {
		for i := range rows {
			if rows[i].Verdict != Undecided {
				t.Errorf("the row is %s, want undecided", rows[i].line())
			}
		}
	}
	if want := "The runs count different trials (--cpu-distance auto → off), so all verdicts are undecided. Repeat one run with the options of the other."; !slices.Contains(c.Notes, want) {
		t.Errorf("notes %q", c.Notes)
	}
	_, outcomes := judged(t, a, b, "gates:\n  - {metric: throughput_bps, worse_by: 3%}\n")
	for row, o := range outcomes {
		if o != Unjudged {
			t.Errorf("the gate of %s is %s, want unjudged", row, o)
		}
	}
	b[0].Run.Options.CPUDistance = ""
	_, err = Runs(a, b, Options{})
	must.Fail(t, err, "b0 and b1 of one side count different trials (--cpu-distance auto → off)")
}

// The same software costs more if the CPUs are far from each other.
func TestRunsAtDifferentDistancesAreNotDecided(t *testing.T) {
	at := func(distance float64, m made) []Side {
		sides := m.runs()
		for _, side := range sides {
			for i := range side.Samples {
				side.Samples[i].Metrics.Set(sample.CPUDistance, distance)
			}
		}
		return sides
	}
	near := at(100, made{id: "a", blocks: 12, seed: 1, noise: 0.01})
	slower := made{id: "b", blocks: 12, seed: 2, noise: 0.01, drift: 0.6}
	for distance, want := range map[float64]bool{440: true, 110: false} {
		c := must.Get(Runs(near, at(distance, slower), Options{}))(t)
		if c.Values[0].Adjusted == nil || (c.Values[0].Verdict == Undecided) != want {
			t.Errorf("100 and %.0f ns: %s; want it undecided: %v", distance, c.Values[0].line(), want)
		}
	}
}

// Stored runs that count other trials, or that have another testbed or length, do not show the
// spread of the compared runs.
func TestHistoryIsOfRunsThatCountTheSameTrialsInTheSameForm(t *testing.T) {
	now := made{id: "b", blocks: 6, seed: 2}.run()
	stored := made{id: "h", blocks: 6, seed: 3}.runs()
	stored[0].Run.Options.Lenient = true
	stored[1].Run.Options.Command = "run pair --short"
	kept := 0
	for _, g := range past(stored, &now, []Side{now}) {
		kept += len(g)
	}
	must.Equal(t, 2, kept)
}
