package compare

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/lab/report/text"
	"windtunnel/lab/sample"
)

// history makes so many runs; from the step on, bridge/stream has another
// throughput and the program another revision.
func history(runs, step int, factor float64) []Side {
	var all []Side
	for i := range runs {
		m := made{id: fmt.Sprintf("run-%02d", i), blocks: 6, seed: uint64(i + 1), noise: 0.01}
		if i >= step {
			m.scale = map[string]float64{"bridge/stream": factor}
		}
		s := m.run()
		s.Run.Started = time.Date(2026, 11, 1+i, 0, 0, 0, 0, time.UTC)
		if i >= step {
			s.Run.Environment.Revision = "new"
		}
		all = append(all, s)
	}
	return all
}

func TestATrendMarksTheRunThatChangedTheLevelAndTheOtherChanges(t *testing.T) {
	trend := must.Get(NewTrend("pair", history(14, 8, 0.9), TrendOptions{Scenarios: []string{"*/stream"}}))(t)
	if len(trend.Series) != 2 || trend.Runs != 14 {
		t.Fatalf("%d series of %d runs", len(trend.Series), trend.Runs)
	}
	for _, s := range trend.Series {
		for i, p := range s.Points {
			if want := s.Scenario == "bridge/stream" && i == 8; (p.Change != nil) != want {
				t.Errorf("%s, run %d: change %+v", s.Scenario, i, p.Change)
			}
			if p.Figure.N != 6 || s.Metric != sample.Throughput {
				t.Errorf("%s, run %d: %+v", s.Scenario, i, p.Figure)
			}
		}
	}
	c := trend.Series[1].Points[8].Change
	if math.Abs(c.Ratio-0.9) > 0.01 || c.P > 0.05 || len(c.Environment) != 1 || c.Environment[0] != (Difference{Name: "windtunnel revision", A: "8b3dce6", B: "new"}) {
		t.Errorf("the change is %+v, want 0.9 with the new revision", c)
	}
	var table, document bytes.Buffer
	must.Succeed(t, text.Write(&table, trend.Document(), text.Options{}))
	for _, want := range []string{"bridge/stream: throughput ", "◀ ×0.9", "windtunnel revision: 8b3dce6 → new", "9.5", "Gbit/s"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("lacks %q:\n%s", want, table.String())
		}
	}
	must.Succeed(t, json.NewEncoder(&document).Encode(trend))
	var back Trend
	if err := json.Unmarshal(document.Bytes(), &back); err != nil || back.Series[1].Points[8].Change.Ratio != c.Ratio {
		t.Errorf("read back: %v", err)
	}
}

func TestRunsOfOneDayHaveTheirTimeInTheTrend(t *testing.T) {
	day := time.Date(2026, 11, 21, 9, 30, 0, 0, time.UTC)
	for _, c := range []struct {
		second time.Time
		want   []string
	}{
		{day.AddDate(0, 0, 1), []string{"2026-11-21", "2026-11-22"}},
		{day.Add(time.Hour), []string{"2026-11-21 09:30", "2026-11-21 10:30"}},
		{day.Add(5 * time.Second), []string{"2026-11-21 09:30:00", "2026-11-21 09:30:05"}},
		{day, []string{"2026-11-21 09:30:00", "2026-11-21 09:30:00"}},
	} {
		s := Series{Points: []TrendPoint{{Started: day}, {Started: c.second}}}
		must.Equal(t, c.want, s.dates())
	}
	runs := history(2, 9, 1)
	runs[1].Run.Started = runs[0].Run.Started.Add(time.Hour)
	trend, err := NewTrend("pair", runs, TrendOptions{})
	var table bytes.Buffer
	if err != nil || text.Write(&table, trend.Document(), text.Options{}) != nil || !strings.Contains(table.String(), "2026-11-01 01:00  ") {
		t.Errorf("%v, want the times of both runs:\n%s", err, table.String())
	}
}

func TestTrendOfOneRunIsASentence(t *testing.T) {
	trend := must.Get(NewTrend("pair", history(1, 9, 1), TrendOptions{}))(t)
	var got bytes.Buffer
	must.Succeed(t, text.Write(&got, trend.Document(), text.Options{}))
	want := "Trend of suite pair\nThere is one run to show. A trend needs two or more: run the suite again.\n\nrun: run-00, 2026-11-01; `windtunnel report run-00` prints it\n"
	must.Equal(t, want, got.String())
}

func TestTrendOfASteadySuiteMarksNothing(t *testing.T) {
	trend := must.Get(NewTrend("pair", history(12, 99, 1), TrendOptions{}))(t)
	if len(trend.Series) != 4 || trend.Series[1].Metric != sample.Transactions {
		t.Fatalf("the trend has %+v, want 4 series with the transactions second", trend.Series)
	}
	for _, s := range trend.Series {
		for _, p := range s.Points {
			if p.Change != nil {
				t.Errorf("%s has a change at run %s: %+v, want none", s.Scenario, p.Run, p.Change)
			}
		}
	}
}

func TestTrendLeavesOutAndCountsWhatIsNotComparable(t *testing.T) {
	runs := history(9, 99, 1)
	runs[0].Run.Status = sample.Stopped
	runs[1].Run.Environment.CPUModel = "another"
	runs[2].Plan.Scenarios[0].Tool = "iperf3"
	gateAll(&runs[3])
	trend, err := NewTrend("pair", runs, TrendOptions{Scenarios: []string{"raw/stream"}})
	must.Succeed(t, err)
	notes := strings.Join(trend.Notes, "\n")
	for _, want := range []string{"1 run that did not complete", "1 run from another machine", "raw/stream: left out 1 run without the scenario", "raw/stream: left out 1 run without a valid figure"} {
		if !strings.Contains(notes, want) {
			t.Errorf("notes lack %q:\n%s", want, notes)
		}
	}
	if got := len(trend.Series[0].Points); got != 5 || trend.Runs != 7 {
		t.Errorf("%d points, %d runs", got, trend.Runs)
	}
	trend, err = NewTrend("pair", runs, TrendOptions{Scenarios: []string{"raw/stream"}, AcrossMachines: true, Last: 3})
	if err != nil || trend.Runs != 3 || trend.Series[0].Points[0].Run != "run-06" {
		t.Errorf("the last three: %v, %+v", err, trend)
	}
}

// A run between hosts, a short run and a run of some scenarios are not points of the suite's series.
func TestTrendHasRunsOfOneForm(t *testing.T) {
	runs := history(9, 99, 1)
	runs[3].Run.Options.Command = "run pair --scenario raw"
	runs[5].Run.Options.Command = "run pair --short"
	runs[6].Run.Options.Command = "run pair --duration 1s"
	runs[8].Run.Options = sample.Options{Command: "run pair --short", Testbed: "hosts.yaml", Hosts: []sample.Host{{Name: "h1", Data: "192.0.2.1"}, {Name: "h2", Data: "192.0.2.2"}}}
	for _, c := range []struct {
		form   sample.Form
		points []string
		note   string
	}{
		{sample.Form{}, []string{"run-00", "run-01", "run-02", "run-04", "run-07"}, "Left out: 4 runs with another testbed or other flags (--like RUN shows those): testbed h1 192.0.2.1, h2 192.0.2.2 --short (1, such as run-08); --duration 1s (1, such as run-06)"},
		{sample.Form{Flags: "--short"}, []string{"run-05"}, "Left out: 8 runs with another testbed or other flags (--like RUN shows those): testbed h1 192.0.2.1, h2 192.0.2.2 --short (1, such as run-08); the whole suite on this machine (5, such as run-07)"},
		{runs[8].Run.Options.Form(), []string{"run-08"}, "Left out: 8 runs"},
	} {
		trend := must.Get(NewTrend("pair", runs, TrendOptions{Form: c.form, Scenarios: []string{"raw/stream"}}))(t)
		var points []string
		for _, p := range trend.Series[0].Points {
			points = append(points, p.Run)
		}
		if notes := strings.Join(trend.Notes, "\n"); !slices.Equal(points, c.points) || trend.Form != c.form || !strings.Contains(notes, c.note) {
			t.Errorf("form %+v: points %v of form %+v, notes %q", c.form, points, trend.Form, notes)
		}
	}
	if trend, err := NewTrend("pair", runs, TrendOptions{Form: sample.Form{Flags: "--tool iperf3"}}); trend != nil || err == nil || !strings.Contains(err.Error(), "none of its 9 runs is complete and has this form (--tool iperf3)") {
		t.Errorf("a form without runs: %v", err)
	}
}

func TestTrendWithoutAnythingToShowIsAnErrorWithARemedy(t *testing.T) {
	running := history(1, 9, 1)
	running[0].Run.Status = sample.Running
	for name, c := range map[string]struct {
		runs []Side
		opts TrendOptions
		says string
	}{
		"no run":           {nil, TrendOptions{}, "none of its 0 runs is complete"},
		"none complete":    {running, TrendOptions{}, "none of its 1 run is complete"},
		"unknown scenario": {history(3, 9, 1), TrendOptions{Scenarios: []string{"bridge/steam"}}, `did you mean "bridge/stream"?`},
		"absent metric":    {history(3, 9, 1), TrendOptions{Metric: sample.RTT}, "no run has tcp_rtt_ns"},
	} {
		if trend, err := NewTrend("pair", c.runs, c.opts); trend != nil || err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSparklineShowsTheShape(t *testing.T) {
	for want, values := range map[string][]float64{
		"▁▅█": {1, 2, 3}, "▄▄▄": {7, 7, 7}, "": nil, "▁ █": {0, math.NaN(), 1}, "▁█": {-math.MaxFloat64, math.MaxFloat64}, " ": {math.Inf(1)},
	} {
		if got := sparkline(values); got != want {
			t.Errorf("%v: %q, want %q", values, got, want)
		}
	}
}
