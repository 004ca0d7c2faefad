package main

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/internal/stopsignal"
	"windtunnel/lab/experiment"
	"windtunnel/lab/probe"
	"windtunnel/lab/results"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
	"windtunnel/lab/testbed/netns"
)

func storeOf(t *testing.T) *results.Store {
	t.Helper()
	s := must.Get(results.Open(filepath.Join(t.TempDir(), "s.db"), results.Options{}))(t)
	t.Cleanup(func() { s.Close() })
	return s
}

// Two runs may begin in the same second.
func TestRunsOfTheSameSecondHaveIDsInTheirOrder(t *testing.T) {
	store := storeOf(t)
	var ids []string
	for range 3 {
		r := &runner{store: store, plan: &suite.Plan{Suite: "quick"}}
		must.Succeed(t, r.create("20261121-093015-quick"))
		ids = append(ids, r.run.ID)
	}
	if !slices.IsSorted(ids) || len(slices.Compact(ids)) != 3 || ids[0] != "20261121-093015-quick" {
		t.Errorf("IDs %q", ids)
	}
}

func TestTheStatusOfARunFollowsFromItsEndAndItsSamples(t *testing.T) {
	store := storeOf(t)
	for _, c := range []struct {
		err    error
		counts bool
		want   sample.Status
	}{
		{nil, true, sample.Complete},
		{nil, false, sample.Empty},
		{experiment.ErrNoneCounts, false, sample.Empty},
		{stopsignal.ErrInterrupted, true, sample.Stopped},
		{stopsignal.ErrInterrupted, false, sample.Stopped},
	} {
		r := &runner{store: store, plan: &suite.Plan{Suite: "quick"}, run: sample.Run{Status: sample.Running}}
		must.Succeed(t, r.create("run"))
		must.Succeed(t, r.Record(sample.Sample{Scenario: "raw", Gates: []sample.Gate{{Name: sample.Steal}}}))
		if c.counts {
			must.Succeed(t, r.Record(sample.Sample{Scenario: "raw", Attempt: 1}))
		}
		must.Succeed(t, r.close(c.err))
		if d, err := store.Load(r.run.ID); err != nil || d.Run.Status != c.want {
			t.Errorf("%+v: %v (%v)", c, d.Run.Status, err)
		}
	}
}

func TestAResumedRunKeepsItsGatesUnlessAFlagChangesThem(t *testing.T) {
	for _, c := range []struct {
		began, flag string
		lenient     bool
	}{
		{"", "", false}, {"warn", "", true}, {"enforce", "warn", true}, {"warn", "enforce", false},
	} {
		store := storeOf(t)
		began := &runner{store: store, plan: &suite.Plan{Suite: "quick"}, options: &runOptions{gates: c.began},
			run: sample.Run{Status: sample.Stopped, Options: sample.Options{Lenient: c.began == "warn", ProfileRate: 99, ProfileBlocks: 2, CPUs: "a=1,b=0", CPUDistance: "far"}}}
		must.Succeed(t, began.create("run"))
		must.Succeed(t, began.Record(sample.Sample{Scenario: "raw"}))
		r := &runner{store: store, options: &runOptions{gates: c.flag}}
		must.Succeed(t, r.load("run"))
		if o := r.run.Options; o.Lenient != c.lenient || o.ProfileRate != 99 || o.ProfileBlocks != 2 || r.counted != 1 || r.options.cpus != (cpuOptions{"a=1,b=0", "far"}) {
			t.Errorf("%+v: options %+v, %d samples count", c, o, r.counted)
		}
	}
}

func TestARunWithoutADirectoryForItsReportIsNotStored(t *testing.T) {
	store := storeOf(t)
	stopped := &runner{store: store, plan: &suite.Plan{Suite: "quick"}, run: sample.Run{Status: sample.Stopped}}
	must.Succeed(t, stopped.create("stopped"))
	for _, out := range []string{"run_test.go", "run_test.go/x", "/proc/x"} {
		fresh := &runner{store: store, options: &runOptions{out: out}, plan: must.Get(loadPlan("quick", suite.ExpandOptions{}))(t),
			machines: &machines{here: true, executor: &netns.Executor{CPUs: []int{0, 1}}, facts: []*probe.Facts{probe.Probe().AssumeRoot()}}}
		must.Fail(t, fresh.open(), "make the report's directory "+out, "choose another with --out")
		resumed := &runner{store: store, options: &runOptions{out: out}}
		must.Succeed(t, resumed.load("stopped"))
		must.Fail(t, resumed.reopen(), "make the report's directory "+out)
	}
	runs := must.Get(store.Runs())(t)
	if len(runs) != 1 || runs[0].Status != sample.Stopped {
		t.Errorf("the store has %+v, want only the stopped run", runs)
	}
}

func TestAResumedRunRefusesAnotherPlan(t *testing.T) {
	for _, flags := range [][]string{{"--trials", "9"}, {"--short"}, {"--profile"}, {"--dry-run"}, {"--seed", "1", "--scenario", "raw"}} {
		cmd := runCommand()
		cmd.SetArgs(append([]string{"--resume", "latest", "--gates", "warn"}, flags...))
		cmd.SetOut(&bytes.Buffer{})
		cmd.SetErr(&bytes.Buffer{})
		err := cmd.ExecuteContext(context.Background())
		if err == nil || !strings.Contains(err.Error(), flags[0]) || strings.Contains(err.Error(), "--gates") {
			t.Errorf("%v: error %v, want one that names %s and not --gates", flags, err, flags[0])
		}
	}
}

func TestARunRecordsTheArgumentsThatAffectItsFigures(t *testing.T) {
	for want, args := range map[string][]string{
		"run quick --scenario 'bridge/*,vxlan' --trials 9":          {"quick", "--scenario", "bridge/*", "--scenario", "vxlan", "--trials", "9", "--out", "x", "--gates", "warn"},
		"run --streams 4 --system raw,bridge --workload tcp_stream": {"--system", "raw,bridge", "--workload", "tcp_stream", "--streams", "4", "--db", "x.db", "--seed", "3", "-q"},
		"run 'my suite.yaml' --cpu-distance near --short":           {"my suite.yaml", "--short", "--cpu-distance", "near"},
	} {
		cmd := runCommand()
		must.Succeed(t, cmd.ParseFlags(args))
		must.Equal(t, want, recorded(cmd, cmd.Flags().Args()))
	}
}

// A machine with one CPU cannot run a scenario of two nodes.
func TestAPlanWithoutARunnableScenarioIsRefusedWithTheReason(t *testing.T) {
	plan := &suite.Plan{Suite: "quick", Scenarios: []suite.Scenario{{ID: "raw/stream"}, {ID: "bridge/stream"}}}
	skips := map[string]string{"raw/stream": "2 nodes need 2 CPUs"}
	if got := nothingRuns(plan, skips); got != "" {
		t.Errorf("one scenario can run, and the text is %q, want none", got)
	}
	skips["bridge/stream"] = "2 nodes need 2 CPUs"
	if got := nothingRuns(plan, skips); got != "windtunnel: no scenario can run:\nskipped bridge/stream, raw/stream: 2 nodes need 2 CPUs\n" {
		t.Errorf("no scenario can run, and the text is %q", got)
	}
	r := &runner{store: storeOf(t), options: &runOptions{}, plan: plan, machines: &machines{executor: &netns.Executor{CPUs: []int{0}}, facts: []*probe.Facts{{Online: []int{0, 1}, Allowed: []int{0}}}}}
	if err := r.open(); !errors.Is(err, exitNothing) {
		t.Errorf("the run was not refused: %v", err)
	}
}
