package results

import (
	"errors"
	"slices"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/lab/report/reporttest"
	"windtunnel/lab/sample"
)

// rows returns the number of rows of each table that has data of runs.
func rows(t *testing.T, s *Store) (counts []int) {
	t.Helper()
	for _, table := range []string{"run", "skip", "sample", "metric", "output", "profile"} {
		var n int
		must.Succeed(t, s.db.QueryRow("SELECT count(*) FROM "+table).Scan(&n))
		counts = append(counts, n)
	}
	return counts
}

func TestADeletedRunLeavesNoRowAndTheOthersKeepTheirs(t *testing.T) {
	onEach(t, testADeletedRunLeavesNoRowAndTheOthersKeepTheirs)
}

func testADeletedRunLeavesNoRowAndTheOthersKeepTheirs(t *testing.T, b backend) {
	run, plan, samples := reporttest.Sample()
	run.Status = sample.Complete
	run.Skipped = map[string]string{"raw/stream": "no such feature"}
	samples[0].Profiles = []sample.Profile{{Side: "sender", Cores: 1, Data: "H4s"}}
	s := b.fresh(t)
	run.ID = "kept"
	fill(t, s, run, plan, samples)
	before := rows(t, s)
	if slices.Contains(before, 0) {
		t.Fatalf("rows %v: a table is empty, so that the test tests nothing of it", before)
	}
	run.ID = "20261122-gone"
	fill(t, s, run, plan, samples)
	if id, err := s.DeleteRun("20261122"); err != nil || id != run.ID {
		t.Fatalf("deleted %q: %v", id, err)
	}
	must.Equal(t, rows(t, s), before)
	if _, err := s.Load(run.ID); !errors.Is(err, ErrUnknownRun) {
		t.Errorf("the deleted run: %v", err)
	}
	if _, err := s.Load("kept"); err != nil {
		t.Error(err)
	}
}

func TestOnlyANamedRunThatNoProcessMeasuresIsDeleted(t *testing.T) {
	onEach(t, testOnlyANamedRunThatNoProcessMeasuresIsDeleted)
}

func testOnlyANamedRunThatNoProcessMeasuresIsDeleted(t *testing.T, b backend) {
	run, plan, _ := reporttest.Sample()
	run.ID, run.Status = "busy", sample.Running
	s := b.fresh(t)
	fill(t, s, run, plan, nil)
	for name, want := range map[string]error{"nosuch": ErrUnknownRun, "": ErrUnknownRun, "busy": ErrRunning, "latest": ErrRunning} {
		if id, err := s.DeleteRun(name); !errors.Is(err, want) {
			t.Errorf("%q: deleted %q, %v; want %v", name, id, err, want)
		}
	}
	readOnly := open(t, s.Path(), Options{ReadOnly: true})
	if _, err := readOnly.DeleteRun("busy"); !errors.Is(err, ErrReadOnly) {
		t.Errorf("a store opened for reading: %v", err)
	}
	must.Equal(t, 1, rows(t, s)[0])
}
