package serve

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"windtunnel/internal/must"
	"windtunnel/lab/report"
	"windtunnel/lab/report/reporttest"
	"windtunnel/lab/sample"
)

const openMetrics = "application/openmetrics-text; version=1.0.0"

// openMetricsLine is a sample in OpenMetrics 1.0, without exemplars and timestamps.
var openMetricsLine = regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*)(\{([a-zA-Z_][a-zA-Z0-9_]*="([^"\\\n]|\\["\\n])*"(,[a-zA-Z_][a-zA-Z0-9_]*="([^"\\\n]|\\["\\n])*")*)?\})? (\S+)$`)

func TestMetricsAreOpenMetricsOfTheNewestRuns(t *testing.T) {
	writer, reader, running, _ := filled(t)
	stopped, plan, samples := later(5, 0.1)
	stopped.Status = sample.Stopped
	put(t, writer, stopped, plan, samples[:2])
	_, at := site(t, reader)

	a := get(t, at+"/metrics", "Accept", openMetrics)
	a.expect(t, "OpenMetrics", http.StatusOK, "# TYPE windtunnel_figure gauge\n")
	if kind := a.header.Get("Content-Type"); !strings.HasPrefix(kind, "application/openmetrics-text") {
		t.Errorf("the type is %q", kind)
	}
	if !strings.HasSuffix(a.body, "\n# EOF\n") {
		t.Error("the text does not end with # EOF")
	}
	got := map[string]float64{}
	for line := range strings.Lines(strings.TrimSuffix(a.body, "# EOF\n")) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "# ") {
			continue
		}
		parts := openMetricsLine.FindStringSubmatch(line)
		if parts == nil {
			t.Fatalf("not a line of OpenMetrics: %q", line)
		}
		v, err := strconv.ParseFloat(parts[len(parts)-1], 64)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		got[parts[1]+parts[2]] = v
	}
	run, plan, samples := later(1, 1)
	figure := report.Build(run, plan, samples).Row("vxlan/stream").Interval(sample.Throughput)
	for name, want := range map[string]float64{
		`windtunnel_runs{status="complete",suite="quick"}`:                                                                    3,
		`windtunnel_runs{status="interrupted",suite="quick"}`:                                                                 1,
		`windtunnel_runs{status="running",suite="slow"}`:                                                                      1,
		fmt.Sprintf(`windtunnel_running_samples{flags="",name="",run="%s",suite="slow",testbed=""}`, running.ID):              3,
		fmt.Sprintf(`windtunnel_newest_run_info{flags="",machine="lab-1",name="",run="%s",suite="quick",testbed=""}`, run.ID): 1,
		`windtunnel_newest_run_start_timestamp_seconds{flags="",suite="quick",testbed=""}`:                                    float64(run.Started.Unix()),
		`windtunnel_newest_run_failed_samples{flags="",suite="quick",testbed=""}`:                                             3,
		`windtunnel_figure{flags="",metric="throughput_bps",scenario="vxlan/stream",suite="quick",testbed=""}`:                figure.Median,
		`windtunnel_figure_low{flags="",metric="throughput_bps",scenario="vxlan/stream",suite="quick",testbed=""}`:            figure.Low,
		`windtunnel_figure_high{flags="",metric="throughput_bps",scenario="vxlan/stream",suite="quick",testbed=""}`:           figure.High,
		`windtunnel_scrape_ok`: 1,
	} {
		if v, ok := got[name]; !ok || v != want {
			t.Errorf("%s is %v (there: %v), want %v", name, v, ok, want)
		}
	}
	if got[`windtunnel_figure{flags="",metric="latency_ns_p50",scenario="raw/rr",suite="quick",testbed=""}`] < 20_000 {
		t.Error("the latency is not there, or not in ns")
	}

	classic := get(t, at+"/metrics").body
	if figures := strings.Count(classic, "\nwindtunnel_figure{"); figures < 20 {
		t.Errorf("%d figures, want 20 or more", figures)
	}
	problems := must.Get(promlint.New(strings.NewReader(classic)).Lint())(t)
	for _, p := range problems {
		t.Errorf("the metric %s has a problem: %s", p.Metric, p.Text)
	}
}

func TestMetricsOfAnEmptyStoreAndOfStrangeNames(t *testing.T) {
	writer, reader := store(t)
	_, at := site(t, reader)
	get(t, at+"/metrics").expect(t, "an empty store", http.StatusOK, "windtunnel_scrape_ok 1")
	get(t, at+"/").expect(t, "the list of an empty store", http.StatusOK, "There is no run")
	get(t, at+"/trend").expect(t, "trends of an empty store", http.StatusOK, "The store has no run")
	get(t, at+"/runs/latest").expect(t, "the latest of no runs", http.StatusNotFound, "no run yet")
	must.Equal(t, "[]\n", get(t, at+"/api/runs").body)
	run, plan, samples := reporttest.Sample()
	run.Suite, run.Environment.Hostname = "sp\"a\\ce\n{é}", "lab"
	put(t, writer, run, plan, samples)
	get(t, at+"/metrics").expect(t, "a strange name", http.StatusOK, `suite="sp\"a\\ce\n{é}"`, "windtunnel_scrape_ok 1")
}

// A later run between hosts, a short run and a run of some scenarios have series of their own.
func TestMetricsOfOtherFormsDoNotReplaceTheSuitesFigures(t *testing.T) {
	writer, reader := store(t)
	run, plan, samples := later(0, 1)
	run.Name = "main"
	put(t, writer, run, plan, samples)
	figure := report.Build(run, plan, samples).Row("vxlan/stream").Interval(sample.Throughput).Median
	for n, options := range []sample.Options{
		{Command: "run quick --short"}, {Command: "run quick --scenario vxlan"}, {Testbed: "hosts.yaml", Hosts: []sample.Host{{Name: "h1", Data: "192.0.2.1"}}},
	} {
		run, plan, samples := later(n+1, 0.5)
		run.Options = options
		put(t, writer, run, plan, samples)
	}
	_, at := site(t, reader)
	a := get(t, at+"/metrics")
	for _, want := range []string{
		`windtunnel_newest_run_info{flags="",machine="lab-1",name="main",run="` + run.ID + `",suite="quick",testbed=""} 1`,
		`windtunnel_figure{flags="",metric="throughput_bps",scenario="vxlan/stream",suite="quick",testbed=""} ` + strconv.FormatFloat(figure, 'g', -1, 64),
		`windtunnel_figure{flags="--short",metric="throughput_bps",scenario="vxlan/stream",suite="quick",testbed=""}`,
		`windtunnel_figure{flags="--scenario vxlan",metric="throughput_bps",scenario="vxlan/stream",suite="quick",testbed=""}`,
		`windtunnel_figure{flags="",metric="throughput_bps",scenario="vxlan/stream",suite="quick",testbed="h1 192.0.2.1"}`,
	} {
		if !strings.Contains(a.body, want) {
			t.Errorf("no %s", want)
		}
	}
}

// One damaged run must not hide the others.
func TestADamagedRunLeavesTheOtherMetrics(t *testing.T) {
	writer, reader, _, _ := filled(t)
	run, plan, samples := reporttest.Sample()
	run.ID, run.Suite = "broken", "broken"
	put(t, writer, run, plan, samples)
	change(t, writer.Path(), "UPDATE sample SET series_json = 'not JSON' WHERE run_id = 'broken'")
	_, at := site(t, reader)
	get(t, at+"/metrics").expect(t, "the metrics", http.StatusOK, "windtunnel_scrape_ok 0", `windtunnel_runs{status="complete",suite="broken"} 1`, `windtunnel_figure{flags="",metric="throughput_bps",scenario="vxlan/stream",suite="quick",testbed=""}`)
}

// The first scrape reads each run. Later scrapes read new runs only. The test removes the samples
// after the first scrape, so a later scrape that read a run again would fail.
func TestLaterScrapesReadNoRunAgain(t *testing.T) {
	writer, reader := store(t)
	const suites = mostKept + 8
	run, plan, samples := reporttest.Sized(1)
	for n := range suites {
		run := run
		run.ID, run.Suite = fmt.Sprint("run-", n), fmt.Sprint("suite-", n)
		put(t, writer, run, plan, samples)
	}
	_, at := site(t, reader)
	get(t, at+"/metrics").expect(t, "the first scrape", http.StatusOK, "windtunnel_scrape_ok 1")
	change(t, writer.Path(), "UPDATE sample SET series_json = 'not JSON'")
	a := get(t, at+"/metrics")
	a.expect(t, "the second scrape", http.StatusOK, "windtunnel_scrape_ok 1")
	for n := range suites {
		if want := fmt.Sprintf(`windtunnel_figure{flags="",metric="throughput_bps",scenario="raw/stream",suite="suite-%d",testbed=""}`, n); !strings.Contains(a.body, want) {
			t.Errorf("the second scrape has no %s", want)
		}
	}
	run.ID, run.Suite, run.Started = "newer", "suite-0", run.Started.Add(time.Hour)
	put(t, writer, run, plan, samples[:6])
	get(t, at+"/metrics").expect(t, "after a new run", http.StatusOK, `windtunnel_newest_run_info{flags="",machine="lab-1",name="",run="newer",suite="suite-0",testbed=""}`, "windtunnel_scrape_ok 1")
}
