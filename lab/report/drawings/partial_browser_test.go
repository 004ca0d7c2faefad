package drawings

import (
	"testing"

	"windtunnel/internal/must"
	"windtunnel/lab/report"
	"windtunnel/lab/report/reporttest"
	"windtunnel/lab/sample"
)

// The report of a run in progress: most scenarios have no trial, and one has only failed
// ones.
func TestPageOfAPartialRunInABrowser(t *testing.T) {
	must.Long(t)
	t.Parallel()
	for n := range 4 {
		run, plan, samples := reporttest.Sample()
		failed := &samples[0]
		failed.Metrics, failed.Series, failed.Hops, failed.Latency = nil, nil, nil, ""
		failed.Failure = &sample.Failure{Kind: sample.ToolHung, Message: "the client was killed"}
		run.Status = sample.Running
		p := browse(t, report.Build(run, plan, samples[:n]), 1280)
		p.Until(t, `String(document.documentElement.classList.contains('js'))`, "true")
		if problems, requests := p.Seen(); len(problems) > 0 || len(requests) > 0 {
			t.Errorf("with %d trials the page said %q and asked for %q", n, problems, requests)
		}
	}
}
