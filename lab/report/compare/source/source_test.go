package source

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"windtunnel/internal/must"
	"windtunnel/lab/report/compare"
	"windtunnel/lab/report/reporttest"
	"windtunnel/lab/results"
	"windtunnel/lab/sample"
)

// The series says at which distance of the CPUs a trial ran: without it all
// levels would be compared as one.
func TestASideKeepsTheStateOfItsTrials(t *testing.T) {
	data := &results.RunData{Samples: []sample.Sample{{Series: []sample.Point{{CPUDistance: 335}}, Hops: []sample.Hop{{}}}}}
	if s := side(data).Samples[0]; len(s.Series) != 1 || s.Series[0].CPUDistance != 335 || s.Hops != nil {
		t.Errorf("sample %+v, want its series without hops", s)
	}
	must.Equal(t, 1, len(data.Samples[0].Hops))
}

// filled returns a store with five complete runs of the suite quick, two that did not
// complete, and one of another suite. A later run has a higher number.
func filled(t *testing.T) *results.Store {
	t.Helper()
	store := must.Get(results.Open(filepath.Join(t.TempDir(), "windtunnel.db"), results.Options{}))(t)
	t.Cleanup(func() { _ = store.Close() })
	for i := range 8 {
		run, plan, samples := reporttest.Sized(1)
		run.ID, run.Started = fmt.Sprintf("run-%d", i), run.Started.AddDate(0, 0, i)
		switch i {
		case 2, 6:
			run.Status = sample.Stopped
		case 4:
			run.Suite = "other"
		}
		must.Succeed(t, store.CreateRun(run, plan))
		must.Get(store.AppendSample(run.ID, samples[0]))(t)
	}
	return store
}

func TestATrendLoadsTheNewestCompleteRuns(t *testing.T) {
	store := filled(t)
	for most, want := range map[int]string{
		0: "run-7 1, run-6 0, run-5 1, run-3 1, run-2 0, run-1 1, run-0 1",
		2: "run-7 1, run-6 0, run-5 1, run-2 0",
		9: "run-7 1, run-6 0, run-5 1, run-3 1, run-2 0, run-1 1, run-0 1",
	} {
		sides, _, err := Suite(store, "quick", "", most)
		must.Succeed(t, err)
		var got []string
		for _, s := range sides {
			got = append(got, fmt.Sprintf("%s %d", s.Run.ID, len(s.Samples)))
		}
		if diff := cmp.Diff(want, strings.Join(got, ", ")); diff != "" {
			t.Errorf("at most %d complete runs with their samples (−want +got):\n%s", most, diff)
		}
	}
	_, _, err := Suite(store, "quik", "", 0)
	must.Fail(t, err, "it has runs of: quick, other")
}

func TestATrendShowsTheWholeSuiteOrTheFormOfARun(t *testing.T) {
	store := filled(t)
	for i, command := range []string{"run odd --short", "run odd --scenario raw"} {
		run, plan, samples := reporttest.Sized(1)
		for _, suite := range []string{"quick", "odd"} {
			run.ID, run.Suite, run.Name, run.Started, run.Options.Command = fmt.Sprint(suite, i), suite, suite+"-name", run.Started.AddDate(1, 0, i), command
			must.Succeed(t, store.CreateRun(run, plan))
			must.Get(store.AppendSample(run.ID, samples[0]))(t)
		}
	}
	for _, c := range []struct {
		suite, like string
		form        sample.Form
		loaded      int
	}{
		{"quick", "", sample.Form{}, 5}, {"odd", "", sample.Form{Flags: "--scenario raw"}, 1}, {"odd", "odd0", sample.Form{Flags: "--short"}, 1},
		{"quick", "run-1", sample.Form{}, 5}, {"quick", "quick-name@latest", sample.Form{Flags: "--scenario raw"}, 1},
	} {
		sides, form, err := Suite(store, c.suite, c.like, 0)
		loaded := 0
		for _, s := range sides {
			loaded += len(s.Samples)
		}
		if err != nil || form != c.form || loaded != c.loaded {
			t.Errorf("%s like %q: form %+v, %d loaded, %v; want %+v, %d", c.suite, c.like, form, loaded, err, c.form, c.loaded)
		}
		if _, err := compare.NewTrend(c.suite, sides, compare.TrendOptions{Form: form}); err != nil {
			t.Errorf("%s like %q: %v", c.suite, c.like, err)
		}
	}
	_, _, err := Suite(store, "quick", "odd0", 0)
	must.Fail(t, err, "run odd0 is of another suite")
}

func TestASideHasTheRunsThatAreNamed(t *testing.T) {
	store := filled(t)
	sides, err := Runs(store, "run-1, run-3,latest")
	if err != nil || len(sides) != 3 || sides[0].Run.ID != "run-1" || sides[2].Run.ID != "run-7" {
		t.Errorf("%d runs, %v, want run-1, run-3 and run-7", len(sides), err)
	}
	if _, err := Runs(store, "run-1,nothing"); err == nil {
		t.Error("an unknown run is no error")
	}
	history, err := History(store, "quick")
	if err != nil || len(history) != 5 || history[0].Run.ID != "run-7" {
		t.Errorf("%d runs of history, %v, want the 5 complete ones, the newest first", len(history), err)
	}
}
