package results

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"windtunnel/internal/must"
	"windtunnel/lab/report/reporttest"
	"windtunnel/lab/sample"
)

func TestProgressHasTheSamplesThatTheReaderLacks(t *testing.T) {
	onEach(t, testProgressHasTheSamplesThatTheReaderLacks)
}

func testProgressHasTheSamplesThatTheReaderLacks(t *testing.T, b backend) {
	place := b.place(t)
	s := open(t, place, Options{})
	run, plan, samples := reporttest.Sample()
	run.Status, run.Finished = sample.Running, time.Time{}
	samples[0].Gates = []sample.Gate{{Name: sample.ForeignCPU, Value: 31.5, Limit: 3, Unit: "%"}}
	samples[1].Flags = []sample.Gate{{Name: sample.Unsteady, Value: 26, Limit: 10, Unit: "%"}}
	other, _, _ := reporttest.Sample()
	other.ID = "20260101-000000-quick"
	fill(t, s, other, plan, samples[:3])
	ids := fill(t, s, run, plan, samples)
	reader := open(t, place, Options{ReadOnly: true})

	got, err := reader.Progress(run.ID, 0, sample.Throughput, sample.Transactions)
	must.Succeed(t, err)
	must.Equal(t, ids, got.IDs)
	if got.Status != sample.Running || !got.Finished.IsZero() {
		t.Errorf("the run is %s, finished %v, want running", got.Status, got.Finished)
	}
	for i, want := range samples {
		want.Latency, want.Series, want.Hops, want.Warnings, want.Outputs, want.Commands = "", nil, nil, nil, nil, nil
		all := want.Metrics
		want.Metrics = nil
		for _, m := range []sample.Metric{sample.Throughput, sample.Transactions} {
			if v, ok := all[m]; ok {
				want.Metrics = sample.Metrics{m: v}
			}
		}
		if diff := cmp.Diff(want, got.Samples[i]); diff != "" {
			t.Fatalf("sample %d (−want +got):\n%s", i, diff)
		}
	}

	last := ids[len(ids)-1]
	id := must.Get(s.AppendSample(run.ID, samples[4]))(t)
	run.Status, run.Finished = sample.Complete, run.Started.Add(time.Hour)
	must.Succeed(t, s.UpdateRun(run))
	got = must.Get(reader.Progress(run.ID, last))(t)
	if len(got.IDs) != 1 || got.IDs[0] != id || got.Status != sample.Complete || !got.Finished.Equal(run.Finished) {
		t.Errorf("after sample %d: samples %v, %s, finished %v; want sample %d, complete", last, got.IDs, got.Status, got.Finished, id)
	}
	if got, err = reader.Progress(run.ID, math.MaxInt64); err != nil || len(got.Samples) != 0 {
		t.Errorf("after the newest: %d samples, %v; want none", len(got.Samples), err)
	}
}

func TestProgressAndHeadOfAnUnknownRun(t *testing.T) { onEach(t, testProgressAndHeadOfAnUnknownRun) }

func testProgressAndHeadOfAnUnknownRun(t *testing.T, b backend) {
	s := b.fresh(t)
	run, plan, samples := reporttest.Sample()
	fill(t, s, run, plan, samples[:1])
	if _, err := s.Progress("20261121", 0); !errors.Is(err, ErrUnknownRun) {
		t.Errorf("the beginning of an ID: %v, want ErrUnknownRun", err)
	}
	if _, err := s.Head("nothing"); !errors.Is(err, ErrUnknownRun) {
		t.Errorf("an unknown name: %v, want ErrUnknownRun", err)
	}
	head := must.Get(s.Head("20261121"))(t)
	must.Equal(t, &RunData{Run: run, Plan: plan}, head)
}

// A query that finds samples by their ID alone would read the rows of all other runs.
func TestProgressFindsSamplesByTheirRun(t *testing.T) {
	s := fresh(t)
	rows := must.Get(s.db.Query("EXPLAIN QUERY PLAN SELECT id, series_json FROM sample WHERE run_id = 'a' AND +id > 5 ORDER BY +id"))(t)
	defer rows.Close()
	found := false
	for rows.Next() {
		var id, parent, unused int
		var detail string
		must.Succeed(t, rows.Scan(&id, &parent, &unused, &detail))
		found = found || detail == "SEARCH sample USING INDEX sample_by_trial (run_id=?)"
	}
	if !found {
		t.Error("the query does not use the index sample_by_trial")
	}
}
