package serve

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/lab/report/reporttest"
	"windtunnel/lab/results"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// matrixRun returns a run in progress between all pairs of hosts, with one scenario and two
// trials of it for each pair. An attempt takes a minute.
func matrixRun(t *testing.T, hosts, parallel int) (sample.Run, suite.Plan) {
	t.Helper()
	run, plan, _ := reporttest.Sample()
	run.ID, run.Suite, run.Status, run.Finished, run.Skipped = "20270102-000000-hosts", "hosts", sample.Running, time.Time{}, nil
	var names []string
	for i := range hosts {
		names = append(names, fmt.Sprintf("h%d", i))
	}
	m := must.Get(suite.NewMatrix(names, "all", parallel))(t)
	one := suite.Plan{Suite: "hosts", Nodes: 2, Trials: 2, Matrix: m, Scenarios: plan.Scenarios[:1]}
	one.Scenarios[0].Timing = suite.Timing{Duration: time.Minute}
	one.Scenarios[0].Timing.Duration -= one.Forecast().Each*time.Duration(parallel) - time.Minute
	return run, one
}

// between returns a sample of a plan's pair of hosts.
func between(plan suite.Plan, pair, block int, start time.Time) sample.Sample {
	return sample.Sample{
		Scenario: suite.PairID(plan.Scenarios[0].ID, plan.Matrix.Pair(pair)), Block: block, Started: start,
		Metrics: sample.Metrics{sample.Throughput: 1e9 * float64(pair+1)},
	}
}

func TestALiveViewOfAMatrixHasARowForEachPair(t *testing.T) {
	writer, reader := store(t)
	run, plan := matrixRun(t, 3, 1)
	lost := suite.PairID(plan.Scenarios[0].ID, plan.Matrix.Pair(5))
	run.Skipped = map[string]string{lost: "h2 has no route to h1"}
	put(t, writer, run, plan, []sample.Sample{between(plan, 0, 0, run.Started), between(plan, 1, 0, run.Started.Add(time.Minute)), between(plan, 1, 1, run.Started.Add(2*time.Minute))})
	_, at := site(t, reader)
	id := plan.Scenarios[0].ID
	get(t, at+"/runs/"+run.ID+"/live").expect(t, "the live view", http.StatusOK, "3 of 10 trials measured", "about 8m0s left",
		"<th scope=\"row\">"+id+" h0→h1</th><td class=\"n\">1 of 2</td><td class=\"n\">1.00 Gbit/s</td>",
		"<th scope=\"row\">"+id+" h0→h2</th><td class=\"n\">2 of 2</td><td class=\"n\">2.00 Gbit/s</td>",
		"<th scope=\"row\">"+id+" h2→h1</th><td class=\"n\">skipped</td>")
	list, err := reader.Runs()
	if err != nil || len(list) != 1 || list[0].Scenarios != 6 {
		t.Errorf("the list of runs is %+v, %v, want 6 scenarios", list, err)
	}
}

func TestALiveViewOfALargeMatrixHasARowForEachScenario(t *testing.T) {
	run, plan := matrixRun(t, 50, 25) // 2,450 pairs
	run.Skipped = map[string]string{suite.PairID(plan.Scenarios[0].ID, plan.Matrix.Pair(2)): "no route"}
	tr := newTracker(&results.RunData{Run: run, Plan: plan})
	var p results.Progress
	for i := range 75 { // 25 at a time, each a minute long
		p.Samples, p.IDs = append(p.Samples, between(plan, i+3, 0, run.Started.Add(time.Duration(i/25)*time.Minute))), append(p.IDs, int64(i+1))
	}
	p.Status = sample.Running
	tr.add(&p)
	v := tr.view()
	if len(v.Rows) != 1 || v.Rows[0].Trials != "75 of 4898" || v.Measured != 75 || v.Total != 4898 {
		t.Errorf("the view is %+v, want one row with 75 of 4898 trials", v)
	}
	if want := "about 3h13m0s left"; v.Left != want { // 4,823 trials, 25 a minute; the estimate includes the skipped pair
		t.Errorf("the remaining time is %q, want %q", v.Left, want)
	}
}

func TestTheRemainingTimeIncludesRepeats(t *testing.T) {
	run, plan := matrixRun(t, 3, 1)
	tr := newTracker(&results.RunData{Run: run, Plan: plan})
	add := func(smp sample.Sample) string {
		tr.add(&results.Progress{Status: sample.Running, Samples: []sample.Sample{smp}, IDs: []int64{tr.last + 1}})
		return tr.view().Left
	}
	must.Equal(t, "about 11m0s left", add(between(plan, 0, 0, run.Started)))
	rejected := between(plan, 1, 0, run.Started.Add(time.Minute))
	rejected.Gates = []sample.Gate{{Name: sample.Steal}}
	// The 11 trials, and one repeat of 7 attempts: 11 × (1 + 1/7 + 1/49) minutes.
	must.Equal(t, "about 12m48s left", add(rejected))
	rejected.Attempt, rejected.Gates, rejected.Started = 1, nil, run.Started.Add(2*time.Minute)
	must.Equal(t, "about 11m24s left", add(rejected))
	var rest string
	for i := range 10 {
		rest = add(between(plan, (i+2)%6, (i+2)/6, run.Started.Add(time.Duration(i+3)*time.Minute)))
	}
	must.Equal(t, "the planned trials are measured", rest)
}
