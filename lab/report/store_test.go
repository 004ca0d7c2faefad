package report_test

import (
	"bytes"
	"path/filepath"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/lab/report"
	"windtunnel/lab/report/export"
	"windtunnel/lab/report/reporttest"
	"windtunnel/lab/results"
)

func TestReportFromTheStoreIsTheReportOfTheRun(t *testing.T) {
	run, plan, samples := reporttest.Sample()
	store := must.Get(results.Open(filepath.Join(t.TempDir(), "windtunnel.db"), results.Options{}))(t)
	defer func() { _ = store.Close() }()
	must.Succeed(t, store.CreateRun(run, plan))
	for _, s := range samples {
		must.Get(store.AppendSample(run.ID, s))(t)
	}
	data := must.Get(store.Load(results.Latest))(t)
	var stored, direct bytes.Buffer
	must.Succeed(t, export.WriteJSON(&stored, report.Build(data.Run, data.Plan, data.Samples)))
	must.Succeed(t, export.WriteJSON(&direct, report.Build(run, plan, samples)))
	if direct.Len() < 10_000 || !bytes.Equal(stored.Bytes(), direct.Bytes()) {
		t.Errorf("the stored run's report of %d bytes is not that of the run, %d bytes", stored.Len(), direct.Len())
	}
}
