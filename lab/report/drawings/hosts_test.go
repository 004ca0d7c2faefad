package drawings

import (
	"strings"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/lab/report"
	"windtunnel/lab/report/model"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// hostReport is the report of three hosts, of which c is slow.
func hostReport(t *testing.T) *model.Report {
	t.Helper()
	m := must.Get(suite.NewMatrix([]string{"a", "b", "<cc>"}, "all", 1))(t)
	plan := suite.Plan{Suite: "test", Title: "Hosts", Nodes: 2, Trials: 6, Matrix: m, Scenarios: []suite.Scenario{{
		ID: "raw/one", Title: "raw", System: "raw", Placement: suite.TwoNodes, Pairs: 1, Workload: suite.Workload{Name: "one", Kind: suite.TCPStream},
	}}}
	var samples []sample.Sample
	for block := range plan.Trials {
		for i := range m.Len() {
			bits := 9e9 + 1e7*float64(block+i)
			if m.Pair(i).Has("<cc>") {
				bits /= 3
			}
			samples = append(samples, sample.Sample{Scenario: suite.PairID("raw/one", m.Pair(i)), Block: block, Metrics: sample.Metrics{sample.Throughput: bits}})
		}
	}
	return report.Build(sample.Run{ID: "r", Suite: "test", Title: "Hosts", Status: sample.Complete}, plan, samples)
}

func TestThePageHasTheMatrixOfTheHosts(t *testing.T) {
	r := hostReport(t)
	page := string(written(t, r))
	for _, want := range []string{
		">raw/one: throughput in Gbit/s between hosts</h2>", `<th scope="col">from \ to</th>`, `<th scope="row">&lt;cc&gt;</th>`,
		`<td class="n worse3">3.01 ▼<br><small>(0.33)</small></td>`, `<td class="n ">–</td>`, "a→&lt;cc&gt; is slow: 3.01 Gbit/s",
		"▼ certainly below the upper quartile of all pairs",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	if strings.Contains(page, "<cc>") {
		t.Error("a host's name is not escaped")
	}
}
