package report_test

import (
	"fmt"
	"strings"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/lab/report"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/report/reporttest"
	"windtunnel/lab/report/text"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// figure is an interval of six trials without spread.
func figure(median float64) *quantity.Interval {
	return &quantity.Interval{Median: median, Low: median, High: median, N: 6, Level: 0.97}
}

// datagrams is a report of four systems with datagrams of three sizes, compared with the
// bridge.
func datagrams() *model.Report {
	r := &model.Report{}
	for i, system := range []string{"bridge", "fast", "alike", "slow"} {
		for j, size := range []string{"udp-64", "udp-256", "udp-1024"} {
			s := model.Scenario{
				ID: system + "/" + size, System: system, Workload: suite.Workload{Name: size, Kind: suite.UDPStream}, Trials: 6,
				Metrics: map[sample.Metric]quantity.Interval{sample.DatagramsReceived: *figure(float64(100_000 * (i + j + 1)))},
			}
			r.Scenarios = append(r.Scenarios, s)
			if i > 0 {
				ratio := []float64{0, 1.3, 0.99, 0.4}[i]
				verdict := []model.Verdict{"", model.Differs, model.Alike, model.Differs}[i]
				r.Comparisons = append(r.Comparisons, model.Comparison{Baseline: "bridge/" + size, Subject: s.ID, Metric: sample.Throughput, Ratio: *figure(ratio), Verdict: verdict})
			}
		}
	}
	last := &r.Scenarios[len(r.Scenarios)-1]
	last.Metrics, last.Trials, last.Skipped = nil, 0, "it needs 8 CPUs, and this machine has 2"
	r.Comparisons = r.Comparisons[:len(r.Comparisons)-1]
	return r
}

func TestAMatrixHasARowForEachSystemAndAColumnForEachWorkload(t *testing.T) {
	list := report.Matrices(datagrams())
	if len(list) != 1 {
		t.Fatalf("%d matrices, want one of datagrams", len(list))
	}
	x := list[0]
	must.Equal(t, "Datagrams received in k/s, and the ratio to bridge", x.Title)
	want := []string{
		"bridge | 100 | 200 | 300",
		"fast | 200 (1.30) | 300 (1.30) | 400 (1.30)",
		"alike | 300 (0.990 ~) | 400 (0.990 ~) | 500 (0.990 ~)",
		"slow | 400 (0.400) | 500 (0.400) | needs 8 CPUs",
	}
	must.Equal(t, strings.Join(want, "\n"), strings.Join(rows(x), "\n"))
	for row, shade := range []string{"", "better2", "", "worse3"} {
		if got := x.Tables[0].Rows[row].Cells[1].Tone; got != shade {
			t.Errorf("row %d is shaded %q, want %q", row, got, shade)
		}
	}
	if cell := x.Tables[0].Rows[3].Cells[3]; !strings.Contains(cell.Why, "8 CPUs") {
		t.Errorf("the skipped cell is %+v, want its reason", cell)
	}
}

func TestLatencyUnderLoadHasAMatrixForEachPercentile(t *testing.T) {
	r := &model.Report{}
	for i, system := range []string{"bridge", "vxlan", "flannel-udp"} {
		for j, load := range []int{0, 1, 8, 16} {
			s := model.Scenario{
				ID: fmt.Sprintf("%s/load-%d", system, load), Workload: suite.Workload{Kind: suite.TCPRR, Load: load}, Trials: 6,
				Metrics: map[sample.Metric]quantity.Interval{},
			}
			for k, m := range []sample.Metric{sample.LatencyP50, sample.LatencyP99, sample.LatencyP999} {
				s.Metrics[m] = *figure(20_000 * float64((i+1)*(k+1)) * []float64{1, 10, 1000, 10_000}[j])
			}
			if load > 0 {
				s.Metrics[sample.LoadThroughput] = *figure(9e9)
			}
			r.Scenarios = append(r.Scenarios, s)
		}
	}
	var titles []string
	for _, x := range report.Matrices(r) {
		titles = append(titles, x.Title)
	}
	must.Equal(t, "Latency p50; Latency p99; Latency p99.9; Load beside the requests in Gbit/s", strings.Join(titles, "; "))
	must.Equal(t, "bridge | 20.0 µs | 200 µs | 20.0 ms | 200 ms", rows(report.Matrices(r)[0])[0])
	for width, heads := range map[int][]string{120: {"load-0 load-1 load-8 load-16"}, 40: {"load-0 load-1", "load-8 load-16"}} {
		shown := strings.Join(strings.Fields(tabled(t, r, text.Options{Width: width})), " ")
		for _, want := range heads {
			if !strings.Contains(shown, "system "+want) {
				t.Errorf("%d columns: the terminal lacks a table of %q:\n%s", width, want, shown)
			}
		}
	}
}

func TestAFewScenariosHaveNoMatrix(t *testing.T) {
	must.Equal(t, 0, len(report.Matrices(reporttest.Quick())))
}
