package results

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"windtunnel/internal/must"
	"windtunnel/lab/report/reporttest"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

func open(t testing.TB, path string, opts Options) *Store {
	t.Helper()
	s := must.Get(Open(path, opts))(t)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func fresh(t testing.TB) *Store {
	t.Helper()
	return sqliteBackend.fresh(t)
}

// fill stores the run of reporttest and returns the samples' ids.
func fill(t testing.TB, s *Store, run sample.Run, plan suite.Plan, samples []sample.Sample) []int64 {
	t.Helper()
	must.Succeed(t, s.CreateRun(run, plan))
	ids := make([]int64, len(samples))
	for i := range samples {
		id := must.Get(s.AppendSample(run.ID, samples[i]))(t)
		ids[i] = id
	}
	return ids
}

func TestARunIsReadAsItWasStoredAlsoAfterReopening(t *testing.T) {
	onEach(t, testARunIsReadAsItWasStoredAlsoAfterReopening)
}

func testARunIsReadAsItWasStoredAlsoAfterReopening(t *testing.T, b backend) {
	run, plan, samples := reporttest.Sample()
	run.Seed = math.MaxUint64
	s := b.fresh(t)
	ids := fill(t, s, run, plan, samples)
	must.Succeed(t, s.Close())
	for _, opts := range []Options{{}, {ReadOnly: true}} {
		again := open(t, s.Path(), opts)
		got := must.Get(again.Load(run.ID))(t)
		want := &RunData{Run: run, Plan: plan, Samples: samples, IDs: ids}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(sample.Sample{}, "Outputs")); diff != "" {
			t.Errorf("read only %v: stored and loaded differ (−want +got):\n%s", opts.ReadOnly, diff)
		}
		for i, id := range ids {
			outputs := must.Get(again.LoadOutputs(id))(t)
			if diff := cmp.Diff(samples[i].Outputs, outputs); diff != "" {
				t.Fatalf("outputs of sample %d differ (−want +got):\n%s", id, diff)
			}
		}
	}
}

// Earlier versions stored the suite's fabrics also for runs between hosts.
func TestAStoredRunBetweenHostsHasTheExistingNetwork(t *testing.T) {
	for testbed, want := range map[string]string{"hosts.yaml": "existing, MTU 1500", "k8s": "existing, MTU 1500", "": "wire, MTU 1500, offload tcp"} {
		run, plan, _ := reporttest.Sample()
		run.Options.Testbed = testbed
		plan.Scenarios[0].Fabric.NoCoalescing = testbed != ""
		s := fresh(t)
		fill(t, s, run, plan, nil)
		got := must.Get(s.Load(run.ID))(t)
		for _, sc := range got.Plan.Scenarios {
			if sc.Fabric.String() != want || sc.Fabric.NoCoalescing {
				t.Errorf("testbed %q: %s has the fabric %q, without coalescing %t; want %q", testbed, sc.ID, sc.Fabric, sc.Fabric.NoCoalescing, want)
			}
		}
	}
	run, plan, _ := reporttest.Sample()
	run.Options.Testbed = "hosts.yaml"
	plan.Scenarios[0].Fabric.Kind, plan.Scenarios[0].Fabric.Offload = suite.Existing, suite.OffloadTunnel
	s := fresh(t)
	fill(t, s, run, plan, nil)
	got := must.Get(s.Load(run.ID))(t)
	if f := got.Plan.Scenarios[0].Fabric; f.Offload != suite.OffloadTunnel {
		t.Errorf("the offload that the suite set came back as %q", f.Offload)
	}
}

func TestGatesFlagsAndProfilesAreReadWithTheirSample(t *testing.T) {
	onEach(t, testGatesFlagsAndProfilesAreReadWithTheirSample)
}

func testGatesFlagsAndProfilesAreReadWithTheirSample(t *testing.T, b backend) {
	run, plan, samples := reporttest.Sample()
	samples = samples[:2]
	samples[0].Gates = []sample.Gate{{Name: sample.ForeignCPU, Value: 31.5, Limit: 3, Unit: "%", Message: "ffmpeg took 31.5 %"}}
	samples[0].Flags = []sample.Gate{{Name: sample.Unsteady, Value: 26, Limit: 10, Unit: "%", Message: "the rate fell by 26 %"}}
	samples[1].Profiled, samples[1].Limit = true, sample.ReceiverLimit
	samples[1].Profiles = []sample.Profile{{Side: "sender", Cores: 0.98, Data: "H4s"}, {Side: "receiver", Cores: 0.61, Data: "H4t"}}
	s := b.fresh(t)
	fill(t, s, run, plan, samples)
	got := must.Get(s.Load(run.ID))(t)
	must.Equal(t, samples, got.Samples, cmpopts.IgnoreFields(sample.Sample{}, "Outputs"))
	if got.Samples[0].Counts() || got.Samples[1].Counts() {
		t.Error("a sample with a failed gate, or a profiled one, counts")
	}
}

func TestStoreWaitsForNoReaderAndSyncsEachCommit(t *testing.T) {
	s := fresh(t)
	for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1", "busy_timeout": "10000"} {
		var got string
		if err := s.db.QueryRow("PRAGMA " + pragma).Scan(&got); err != nil || got != want {
			t.Errorf("PRAGMA %s is %q, %v, want %q", pragma, got, err, want)
		}
	}
}

func TestOutputsAreKeptByteForByteAndCompressed(t *testing.T) {
	onEach(t, testOutputsAreKeptByteForByteAndCompressed)
}

func testOutputsAreKeptByteForByteAndCompressed(t *testing.T, b backend) {
	s := b.fresh(t)
	run, plan, _ := reporttest.Sample()
	must.Succeed(t, s.CreateRun(run, plan))
	want := []sample.Output{
		{Role: "server", Stdout: strings.Repeat("[  5] 0.00-1.00 sec 1.10 GBytes\n", 20000), Stderr: "\x00\xff not UTF-8 \xc3", Exit: -1},
		{Role: "client", Exit: 3},
	}
	id := must.Get(s.AppendSample(run.ID, sample.Sample{Scenario: "raw/stream", Outputs: want}))(t)
	got := must.Get(s.LoadOutputs(id))(t)
	must.Equal(t, want, got)
	var size int
	if err := s.db.QueryRow("SELECT sum(length(stdout_zstd)) FROM output").Scan(&size); err != nil || size > 10000 || size == 0 {
		t.Errorf("640,000 repeated bytes take %d in the store, %v", size, err)
	}
}

func TestRunsAreListedNewestFirstWithTheirCounts(t *testing.T) {
	onEach(t, testRunsAreListedNewestFirstWithTheirCounts)
}

func testRunsAreListedNewestFirstWithTheirCounts(t *testing.T, b backend) {
	s := b.fresh(t)
	run, plan, samples := reporttest.Sample()
	fill(t, s, run, plan, samples)
	older := run
	older.ID, older.Started, older.Finished, older.Status, older.Skipped = "20260101-000000-quick", run.Started.Add(-time.Hour), time.Time{}, sample.Running, nil
	must.Succeed(t, s.CreateRun(older, plan))
	got := must.Get(s.Runs())(t)
	// 8 scenarios × 6 blocks, one repeated after a hung tool, one failed twice.
	want := []RunSummary{
		{ID: run.ID, Suite: "quick", Title: run.Title, Started: run.Started, Finished: run.Finished, Status: sample.Complete, Machine: "lab-1", Scenarios: 9, Skipped: 1, Samples: 50, Failures: 3},
		{ID: older.ID, Suite: "quick", Title: run.Title, Started: older.Started, Status: sample.Running, Machine: "lab-1", Scenarios: 9},
	}
	must.Equal(t, want, got)
}

func TestANamedRunIsFoundByItsNameAndListedWithItsForm(t *testing.T) {
	onEach(t, testANamedRunIsFoundByItsNameAndListedWithItsForm)
}

func testANamedRunIsFoundByItsNameAndListedWithItsForm(t *testing.T, b backend) {
	s := b.fresh(t)
	run, plan, _ := reporttest.Sample()
	for i, name := range []string{"main", "fix/mtu", "main", ""} {
		run := run
		run.ID, run.Name, run.Started = fmt.Sprintf("2026112%d-080000-quick", i+1), name, run.Started.AddDate(0, 0, i)
		if name == "fix/mtu" {
			run.Note, run.Options.Command = "a note, with 'quotes'", "run quick --short"
		}
		must.Succeed(t, s.CreateRun(run, plan))
	}
	must.Succeed(t, s.SetHeadline("20261122-080000-quick", "The bridge carries 3 % less."))
	if err := s.SetHeadline("nosuch", "x"); !errors.Is(err, ErrUnknownRun) {
		t.Errorf("the headline of no run: %v", err)
	}
	for name, want := range map[string]string{
		"fix/mtu": "20261122-080000-quick", "fix/mtu@latest": "20261122-080000-quick", "main@latest": "20261123-080000-quick", "latest": "20261124-080000-quick",
		"20261121": "20261121-080000-quick",
	} {
		if id, err := s.Resolve(name); err != nil || id != want {
			t.Errorf("Resolve(%q) = %s, %v, want %s", name, id, err, want)
		}
	}
	for name, says := range map[string]string{
		"main":         "2 runs have this name: 20261123-080000-quick, 20261121-080000-quick; main@latest is the newest of them",
		"mian":         "similar runs: main",
		"other@latest": "there is no run of this name",
		"@latest":      "there is no run of this name",
	} {
		if _, err := s.Resolve(name); !errors.Is(err, ErrUnknownRun) || !strings.Contains(err.Error(), says) {
			t.Errorf("Resolve(%q): %v, want %q", name, err, says)
		}
	}
	list, err := s.Runs()
	if err != nil || len(list) != 4 {
		t.Fatalf("%d runs, %v", len(list), err)
	}
	if r := list[2]; r.Name != "fix/mtu" || r.Note != "a note, with 'quotes'" || r.Headline != "The bridge carries 3 % less." || list[0].Headline != "" || r.Form != (sample.Form{Flags: "--short"}) || list[0].Form != (sample.Form{}) {
		t.Errorf("the list has %+v and %+v", r, list[0])
	}
	data, err := s.Load("fix/mtu")
	if err != nil || data.Run.Name != "fix/mtu" || data.Run.Note != list[2].Note {
		t.Errorf("loaded %q with the note %q, %v", data.Run.Name, data.Run.Note, err)
	}
}

func TestMetricsCanBeQueriedBySQL(t *testing.T) { onEach(t, testMetricsCanBeQueriedBySQL) }

func testMetricsCanBeQueriedBySQL(t *testing.T, b backend) {
	s := b.fresh(t)
	run, plan, samples := reporttest.Sample()
	fill(t, s, run, plan, samples)
	var n int
	var low float64
	err := s.db.QueryRow(`SELECT count(*), min(value) FROM sample JOIN metric ON sample_id = sample.id
		WHERE scenario = 'raw/stream' AND metric = 'throughput_bps'`).Scan(&n, &low)
	if err != nil || n != 6 || low < 10e9 || low > 12e9 {
		t.Errorf("%d rows from %v, %v, want 6 rows around 11.2e9", n, low, err)
	}
}

func TestUpdateRunReplacesSkipsAndKeepsSeedAndSuite(t *testing.T) {
	onEach(t, testUpdateRunReplacesSkipsAndKeepsSeedAndSuite)
}

func testUpdateRunReplacesSkipsAndKeepsSeedAndSuite(t *testing.T, b backend) {
	s := b.fresh(t)
	run, plan, _ := reporttest.Sample()
	begun := run
	begun.Finished, begun.Status, begun.Skipped, begun.Environment = time.Time{}, sample.Running, nil, sample.Environment{}
	must.Succeed(t, s.CreateRun(begun, plan))
	want := run
	want.Skipped = map[string]string{"vxlan/rr": "this kernel has no vxlan"}
	must.Succeed(t, s.UpdateRun(want))
	after := run
	after.Skipped, after.Seed, after.Suite = nil, 7, "other"
	must.Succeed(t, s.UpdateRun(after))
	expectRun(t, s, want)
	must.Succeed(t, s.UpdateRun(run)) // its Skipped takes the place of the other
	expectRun(t, s, run)
}

func expectRun(t *testing.T, s *Store, want sample.Run) {
	t.Helper()
	got := must.Get(s.Load(want.ID))(t)
	must.Equal(t, want, got.Run)
}

func TestSecondRunOfTheSameIDIsRefused(t *testing.T) { onEach(t, testSecondRunOfTheSameIDIsRefused) }

func testSecondRunOfTheSameIDIsRefused(t *testing.T, b backend) {
	s := b.fresh(t)
	run, plan, _ := reporttest.Sample()
	must.Succeed(t, s.CreateRun(run, plan))
	other := run
	other.Title = "another"
	if err := s.CreateRun(other, plan); !errors.Is(err, ErrTaken) || !strings.Contains(err.Error(), run.ID) {
		t.Errorf("error %v", err)
	}
	expectRun(t, s, run)
}

func TestRunIsFoundByPrefixAndLatest(t *testing.T) { onEach(t, testRunIsFoundByPrefixAndLatest) }

func testRunIsFoundByPrefixAndLatest(t *testing.T, b backend) {
	s := b.fresh(t)
	run, plan, _ := reporttest.Sample()
	for i, id := range []string{"20261121-093015-quick", "20261121-101500-aa", "20261122-080000-quick"} {
		r := run
		r.ID, r.Started = id, run.Started.Add(time.Duration(i)*time.Hour)
		must.Succeed(t, s.CreateRun(r, plan))
	}
	for name, want := range map[string]string{
		"": "20261122-080000-quick", "latest": "20261122-080000-quick", "20261121-1": "20261121-101500-aa",
		"20261121-093015-quick": "20261121-093015-quick", "20261122": "20261122-080000-quick",
	} {
		got, err := s.Load(name)
		if err != nil || got.Run.ID != want {
			t.Errorf("Load(%q): %v, %v, want %s", name, got, err, want)
		}
		if id, err := s.Resolve(name); err != nil || id != want {
			t.Errorf("Resolve(%q) = %s, %v, want %s", name, id, err, want)
		}
	}
	for name, says := range map[string]string{
		"20261121":              "the IDs of 2 runs begin with this: 20261121-101500-aa, 20261121-093015-quick",
		"aa":                    "similar runs: 20261121-101500-aa",
		"20261121-093016-quick": "similar runs: 20261121-093015-quick",
		"'; DROP TABLE run; --": "there is no run of this name",
	} {
		_, err := s.Load(name)
		if !errors.Is(err, ErrUnknownRun) || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), s.Path()) {
			t.Errorf("Load(%q): error %v, want one that says %q", name, err, says)
		}
	}
}

func TestUnknownRunIsAnErrorEverywhere(t *testing.T) { onEach(t, testUnknownRunIsAnErrorEverywhere) }

func testUnknownRunIsAnErrorEverywhere(t *testing.T, b backend) {
	s := b.fresh(t)
	if _, err := s.Load(""); !errors.Is(err, ErrUnknownRun) || !strings.Contains(err.Error(), "no run yet") {
		t.Errorf("Load of an empty store: %v", err)
	}
	run, plan, samples := reporttest.Sample()
	must.Succeed(t, s.CreateRun(run, plan))
	wrong := run
	wrong.ID = "20261121-093015-quik"
	_, appendErr := s.AppendSample(wrong.ID, samples[0])
	for what, err := range map[string]error{
		"AppendSample": appendErr,
		"UpdateRun":    s.UpdateRun(wrong),
	} {
		if !errors.Is(err, ErrUnknownRun) || !strings.Contains(err.Error(), run.ID) {
			t.Errorf("%s: error %v, want one that names %s", what, err, run.ID)
		}
	}
}

func TestValuesThatAreNotNumbersAreLeftOutWithAWarning(t *testing.T) {
	onEach(t, testValuesThatAreNotNumbersAreLeftOutWithAWarning)
}

func testValuesThatAreNotNumbersAreLeftOutWithAWarning(t *testing.T, b backend) {
	s := b.fresh(t)
	run, plan, _ := reporttest.Sample()
	must.Succeed(t, s.CreateRun(run, plan))
	given := sample.Sample{
		Scenario: "raw/rr", Warnings: []string{"first"},
		Metrics: sample.Metrics{sample.Throughput: 1e9, sample.RTT: math.NaN(), sample.Cwnd: math.Inf(1)},
		Series:  []sample.Point{{At: 0, Bits: 1}, {At: 0.1, Bits: math.NaN()}},
	}
	must.Get(s.AppendSample(run.ID, given))(t)
	data := must.Get(s.Load(""))(t)
	got := data.Samples[0]
	must.Equal(t, sample.Metrics{sample.Throughput: 1e9}, got.Metrics)
	must.Equal(t, []sample.Point{{At: 0, Bits: 1}}, got.Series)
	if len(got.Warnings) != 4 || got.Warnings[0] != "first" || !strings.Contains(got.Warnings[2], "tcp_rtt_ns was NaN") {
		t.Errorf("warnings %q", got.Warnings)
	}
	if len(given.Metrics) != 3 || len(given.Series) != 2 || len(given.Warnings) != 1 {
		t.Error("the caller's sample was changed")
	}
}

func TestReadOnlyStoreRefusesToWrite(t *testing.T) { onEach(t, testReadOnlyStoreRefusesToWrite) }

func testReadOnlyStoreRefusesToWrite(t *testing.T, b backend) {
	s := b.fresh(t)
	run, plan, samples := reporttest.Sample()
	fill(t, s, run, plan, samples[:1])
	reader := open(t, s.Path(), Options{ReadOnly: true})
	if _, err := reader.AppendSample(run.ID, samples[1]); !errors.Is(err, ErrReadOnly) {
		t.Errorf("AppendSample: %v", err)
	}
	if _, err := reader.db.Exec("DELETE FROM sample"); err == nil {
		t.Error("SQL deleted through a store opened for reading")
	}
}

func TestDefaultPathFollowsXDG(t *testing.T) {
	t.Setenv("HOME", "/home/someone")
	for xdg, want := range map[string]string{
		"/data":    "/data/windtunnel/windtunnel.db",
		"":         "/home/someone/.local/share/windtunnel/windtunnel.db",
		"relative": "/home/someone/.local/share/windtunnel/windtunnel.db",
	} {
		t.Setenv("XDG_DATA_HOME", xdg)
		if got, err := DefaultPath(); err != nil || got != want {
			t.Errorf("XDG_DATA_HOME=%q: %s, %v, want %s", xdg, got, err, want)
		}
	}
	t.Setenv("XDG_DATA_HOME", "")
	t.Setenv("HOME", "")
	if path, err := DefaultPath(); err == nil || !strings.Contains(err.Error(), "--db") {
		t.Errorf("without a home: %s, %v", path, err)
	}
}
