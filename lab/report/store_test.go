package report_test

import (
	"bytes"
	"path/filepath"
	"testing"

	"windtunnel/lab/report"
	"windtunnel/lab/report/export"
	"windtunnel/lab/report/reporttest"
	"windtunnel/lab/results"
)

func TestReportFromTheStoreIsTheReportOfTheRun(t *testing.T) {
	run, plan, samples := reporttest.Sample()
	store, err := results.Open(filepath.Join(t.TempDir(), "windtunnel.db"), results.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	if err := store.CreateRun(run, plan); err != nil {
		t.Fatal(err)
	}
	for _, s := range samples {
		if _, err := store.AppendSample(run.ID, s); err != nil {
			t.Fatal(err)
		}
	}
	data, err := store.Load(results.Latest)
	if err != nil {
		t.Fatal(err)
	}
	var stored, direct bytes.Buffer
	if err := export.WriteJSON(&stored, report.Build(data.Run, data.Plan, data.Samples)); err != nil {
		t.Fatal(err)
	}
	if err := export.WriteJSON(&direct, report.Build(run, plan, samples)); err != nil {
		t.Fatal(err)
	}
	if direct.Len() < 10_000 || !bytes.Equal(stored.Bytes(), direct.Bytes()) {
		t.Errorf("the stored run's report of %d bytes is not that of the run, %d bytes", stored.Len(), direct.Len())
	}
}
