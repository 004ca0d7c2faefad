package report_test

import (
	"slices"
	"strings"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/lab/report"
	"windtunnel/lab/report/reporttest"
	"windtunnel/lab/report/text"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

func TestAScenarioCanBeRepeatedByHand(t *testing.T) {
	r := reporttest.Quick()
	list := report.ByHand(r)
	var ids []string
	for _, h := range list {
		ids = append(ids, h.Title)
	}
	if len(ids) != 8 || slices.Contains(ids, "macvlan/stream") {
		t.Errorf("scenarios %q, want the eight that ran", ids)
	}
	want := []string{
		"windtunnel lab up quick --scenario raw/stream",
		"windtunnel lab exec quick b1 -- windtunnel ntttcp -r -m 1,0,10.0.0.2 &  # server",
		"sleep 1",
		"windtunnel lab exec quick a1 -- windtunnel ntttcp -s -m 1,0,10.0.0.2 -t 3  # client",
		"windtunnel lab down quick",
	}
	if !slices.Equal(list[0].Lines, want) {
		t.Errorf("lines\n%s\nwant\n%s", strings.Join(list[0].Lines, "\n"), strings.Join(want, "\n"))
	}
}

func TestScenariosWithVMsAreNotRepeatedByHand(t *testing.T) {
	r := reporttest.Quick()
	r.Scenarios[0].Endpoint.Kind = suite.VM
	if list := report.ByHand(r); len(list) != 7 || list[0].Title != "raw/rr" {
		t.Errorf("%d scenarios from %s, want 7 from raw/rr", len(list), list[0].Title)
	}
}

// The command that a report prints repeats the run with the same options.
func TestTheCommandOfARunHasItsOptions(t *testing.T) {
	run, plan, samples := reporttest.Sample()
	run.Options = sample.Options{Command: "run quick --scenario bridge,vxlan --cpu-distance near", Lenient: true}
	r := report.Build(run, plan, samples)
	const want = "windtunnel run quick --scenario bridge,vxlan --cpu-distance near --gates warn"
	must.Equal(t, want+" --seed 42", report.Repeat(r)[0])
	for name, text := range map[string]string{"table": tabled(t, r, text.Options{Width: 100}), "Markdown": strings.ReplaceAll(written(t, asMarkdown, r), "\\", "")} {
		if !strings.Contains(text[:strings.Index(text, "throughput")], want) {
			t.Errorf("the heading of the %s lacks the command:\n%s", name, text)
		}
	}
}
