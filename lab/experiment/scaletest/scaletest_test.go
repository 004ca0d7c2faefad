package scaletest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"windtunnel/internal/must"
	"windtunnel/lab/experiment"
	"windtunnel/lab/report"
	"windtunnel/lab/results"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
	"windtunnel/lab/testbed/testbedtest"
)

// timing is short: the clock is simulated, but each point of a series costs CPU time.
var timing = suite.Timing{Warmup: 100 * time.Millisecond, Duration: 500 * time.Millisecond, Cooldown: 100 * time.Millisecond}

// TestMain uses the store once: its encoder for outputs is made at the first use, has a
// channel, and lasts for the process. A channel of one simulated clock must not be used
// with another.
func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "scaletest")
	if err == nil {
		err = warmUp(filepath.Join(dir, "warm.db"))
		os.RemoveAll(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func warmUp(path string) error {
	store, err := results.Open(path, results.Options{})
	if err != nil {
		return err
	}
	defer store.Close()
	if err := store.CreateRun(sample.Run{ID: "warm"}, suite.Plan{}); err != nil {
		return err
	}
	_, err = store.AppendSample("warm", sample.Sample{Outputs: []sample.Output{{Stdout: "text"}}})
	return err
}

// simulate measures with a simulated clock, and returns what the store has.
func simulate(t *testing.T, o Options) (out Outcome, data *results.RunData) {
	t.Helper()
	o.Store = filepath.Join(t.TempDir(), "scale.db")
	synctest.Test(t, func(t *testing.T) {
		var err error
		if out, err = Measure(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	})
	return out, load(t, o.Store)
}

// load returns the only run of a store.
func load(t *testing.T, path string) *results.RunData {
	t.Helper()
	store := must.Get(results.Open(path, results.Options{ReadOnly: true}))(t)
	defer store.Close()
	return must.Get(store.Load(results.Latest))(t)
}

// counting counts the samples whose figures count, by pair.
func counting(samples []sample.Sample) map[suite.HostPair]int {
	n := map[suite.HostPair]int{}
	for i := range samples {
		if _, p, ok := suite.SplitPairID(samples[i].Scenario); ok && samples[i].Counts() {
			n[p]++
		}
	}
	return n
}

// WINDTUNNEL_SCALE_HOSTS=100 takes about a minute.
func TestEveryPairOfHostsIsMeasuredOnceAndNoHostTwiceAtATime(t *testing.T) {
	hosts := 40
	if testing.Short() {
		hosts = 20
	}
	if text := os.Getenv("WINDTUNNEL_SCALE_HOSTS"); text != "" {
		var err error
		if hosts, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	out, data := simulate(t, Options{Hosts: hosts, Pairs: "all", Parallel: hosts / 2, Trials: 1, Timing: timing})
	must.Equal(t, 1, out.Most)
	must.Equal(t, hosts/2, out.AtOnce)
	n := counting(data.Samples)
	if len(n) != hosts*(hosts-1) || len(data.Samples) != len(n) {
		t.Errorf("%d samples of %d pairs, want one of each of %d pairs", len(data.Samples), len(n), hosts*(hosts-1))
	}
	for i := range data.Plan.Matrix.Len() {
		if p := data.Plan.Matrix.Pair(i); n[p] != 1 {
			t.Fatalf("%v was measured %d times, want once", p, n[p])
		}
	}
}

func TestAHostThatVanishesFailsOnlyItsPairs(t *testing.T) {
	const hosts, lost = 12, 7
	out, data := simulate(t, Options{Hosts: hosts, Pairs: "all", Parallel: hosts / 2, Trials: 2, Timing: timing, Stored: func(n int, f *testbedtest.Fleet) {
		if n == 40 {
			f.Vanish(Host(lost))
		}
	}})
	must.Equal(t, 1, out.Most)
	n := counting(data.Samples)
	for i := range data.Plan.Matrix.Len() {
		p := data.Plan.Matrix.Pair(i)
		if !p.Has(Host(lost)) && n[p] != 2 {
			t.Errorf("%v has %d trials that count, want 2", p, n[p])
		}
	}
	failed, attempts := 0, map[string]int{}
	for i := range data.Samples {
		s := &data.Samples[i]
		if s.OK() {
			continue
		}
		failed++
		attempts[s.Scenario+strconv.Itoa(s.Block)]++
		if !strings.Contains(s.Scenario, Host(lost)) {
			t.Errorf("%s failed: %v", s.Scenario, s.Failure)
		}
	}
	if failed < 2*(hosts-1) {
		t.Errorf("%d attempts with the lost host failed, want %d or more: the test does not test", failed, 2*(hosts-1))
	}
	if repeated := failed - len(attempts); repeated > 3*2 {
		t.Errorf("%d of %d failed attempts are repeats, want few: the host is lost", repeated, failed)
	}
}

func TestAnInterruptedMatrixContinuesWhereItEnded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "scale.db")
	o := Options{Hosts: 6, Pairs: "all", Parallel: 3, Trials: 1, Timing: timing, Store: path}
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		o.Stored = func(n int, _ *testbedtest.Fleet) {
			if n == 10 {
				stop()
			}
		}
		if _, err := Measure(ctx, o); err == nil {
			t.Error("the interrupted run returned no error")
		}
	})
	data := load(t, path)
	if before := counting(data.Samples); len(before) != 10 {
		t.Fatalf("%d pairs were stored before the interruption, want 10", len(before))
	}
	synctest.Test(t, func(t *testing.T) {
		store := must.Get(results.Open(path, results.Options{}))(t)
		defer store.Close()
		fleet := must.Get(testbedtest.NewFleet(data.Plan.Matrix.Hosts))(t)
		defer fleet.Close()
		r := &recorder{store: store, run: data.Run.ID, fleet: fleet}
		e := &experiment.Experiment{
			Plan: &data.Plan, Seed: data.Run.Seed, Executor: fleet, ID: "scale", Self: "windtunnel", Attempts: 3, Recorder: r, Observer: r, Grace: time.Second, History: data.Samples,
		}
		if err := e.Run(t.Context()); err != nil {
			t.Error(err)
		}
	})
	data = load(t, path)
	after := counting(data.Samples)
	for p, n := range after {
		if n != 1 {
			t.Errorf("%v was measured %d times, want once", p, n)
		}
	}
	must.Equal(t, 30, len(after))
}

// The figures go from the hosts through the agents, the engine and the store to the
// sentences of the report.
func TestTheReportNamesTheSlowHost(t *testing.T) {
	slow := Host(2)
	_, data := simulate(t, Options{Hosts: 5, Pairs: "all", Parallel: 2, Trials: 6, Timing: timing, Rate: func(from, to string) float64 {
		switch {
		case from == slow:
			return 3e9
		case to == slow:
			return 3.1e9
		}
		return 9e9
	}})
	r := report.Build(data.Run, data.Plan, data.Samples)
	if len(r.HostMatrices) != 1 {
		t.Fatalf("%d matrices, want 1", len(r.HostMatrices))
	}
	var named []string
	for _, p := range r.HostMatrices[0].Pairs {
		if p.Slow {
			named = append(named, p.HostPair().String())
		}
		if p.Asymmetric {
			t.Errorf("%v is called asymmetric, and its directions differ by 3 %%", p.HostPair())
		}
	}
	var want []string
	for i := range 5 {
		if h := Host(i); h != slow {
			want = append(want, h+"→"+slow, slow+"→"+h)
		}
	}
	slices.Sort(named)
	slices.Sort(want)
	must.Equal(t, want, named)
}
