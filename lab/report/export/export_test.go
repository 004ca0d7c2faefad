package export

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchproc"

	"windtunnel/internal/must"
	"windtunnel/lab/report"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/reporttest"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

func written(t *testing.T, write func(io.Writer, *model.Report) error, r *model.Report) string {
	t.Helper()
	var b bytes.Buffer
	must.Succeed(t, write(&b, r))
	return b.String()
}

func TestJSONHasTheKeysOfTheContract(t *testing.T) {
	var doc struct {
		Run         map[string]any
		Scenarios   []map[string]any
		Comparisons []map[string]any
	}
	must.Succeed(t, json.Unmarshal([]byte(written(t, WriteJSON, reporttest.Quick())), &doc))
	has := func(what string, object any, keys ...string) {
		t.Helper()
		m, ok := object.(map[string]any)
		for _, k := range keys {
			if _, there := m[k]; !ok || !there {
				t.Errorf("%s lacks %q", what, k)
			}
		}
	}
	lacks := func(what string, object map[string]any, keys ...string) {
		t.Helper()
		for _, k := range keys {
			if v, there := object[k]; there {
				t.Errorf("%s was not measured, but has %q: %v", what, k, v)
			}
		}
	}
	has("run", doc.Run, "id", "suite", "started", "seed", "environment")
	stream, rr, skipped := doc.Scenarios[0], doc.Scenarios[1], doc.Scenarios[8]
	has("stream", stream, "id", "system", "placement", "tool", "offload", "trials", "retransmits", "errors", "samples")
	for _, metric := range []string{"throughput_bps", "sender_cpu_percent", "receiver_cpu_percent", "sender_cpu_ns_per_byte", "receiver_cpu_ns_per_byte", "packets_per_s"} {
		has("stream "+metric, stream[metric], "median", "low", "high")
	}
	has("rr", rr["transactions_per_s"], "median", "low", "high")
	has("rr latency", rr["latency_ns"], "p50", "p90", "p99", "p999", "max")
	lacks("stream", stream, "transactions_per_s", "latency_ns", "skipped")
	lacks("rr", rr, "throughput_bps", "sender_cpu_ns_per_byte")
	has("skipped", skipped, "skipped", "samples", "trials")
	lacks("skipped", skipped, "throughput_bps", "retransmits", "errors")
	has("comparison", doc.Comparisons[0], "baseline", "subject", "metric", "ratio")
	has("ratio", doc.Comparisons[0]["ratio"], "median", "low", "high")
}

func TestJSONReadsBackAsTheSameReport(t *testing.T) {
	r := reporttest.Quick()
	text := written(t, WriteJSON, r)
	var again model.Report
	must.Succeed(t, json.Unmarshal([]byte(text), &again))
	must.Equal(t, text, written(t, WriteJSON, &again))
}

func TestJSONListsAreThereWhenEmpty(t *testing.T) {
	text := written(t, WriteJSON, &model.Report{})
	for _, part := range []string{`"scenarios": []`, `"comparisons": []`} {
		if !strings.Contains(text, part) {
			t.Errorf("the JSON lacks %s: %s", part, text)
		}
	}
	run, plan, _ := reporttest.Sample()
	if text := written(t, WriteJSON, report.Build(run, plan, nil)); strings.Contains(text, "null") {
		t.Error("an empty run has null in its JSON")
	}
}

func TestCSVHasOneRowASampleWithEveryMetric(t *testing.T) {
	r := reporttest.Quick()
	rows := must.Get(csv.NewReader(strings.NewReader(written(t, WriteCSV, r))).ReadAll())(t)
	header := rows[0]
	for _, info := range sample.Known() {
		if !slices.Contains(header, string(info.Metric)) {
			t.Errorf("the CSV has no column %s", info.Metric)
		}
	}
	at := func(name string) int { return slices.Index(header, name) }
	i := 1
	for _, sc := range r.Scenarios {
		for _, s := range sc.Samples {
			row := rows[i]
			i++
			if row[at("scenario")] != sc.ID || row[at("system")] != sc.System || row[at("block")] != strconv.Itoa(s.Block) ||
				row[at("attempt")] != strconv.Itoa(s.Attempt) || (row[at("failure")] == "") != s.OK() {
				t.Errorf("row %d is %q", i, row[:9])
			}
			for _, info := range sample.Known() {
				v, measured := s.Metrics[info.Metric]
				cell := row[at(string(info.Metric))]
				if got, err := strconv.ParseFloat(cell, 64); measured && (err != nil || got != v) || !measured && cell != "" {
					t.Errorf("row %d %s: %q, measured %v %v", i, info.Metric, cell, v, measured)
				}
			}
		}
	}
	if i != len(rows) {
		t.Errorf("%d rows, %d samples", len(rows)-1, i-1)
	}
}

func TestCSVKeepsMetricsItDoesNotKnowAndQuotesText(t *testing.T) {
	plan := suite.Plan{Scenarios: []suite.Scenario{{ID: "a/stream"}, {ID: "b/stream"}}}
	samples := []sample.Sample{{Scenario: "a/stream", Metrics: sample.Metrics{"zebra_count": 4}}}
	samples = append(samples, sample.Sample{Scenario: "b/stream", Failure: &sample.Failure{Kind: sample.ToolFailed, Message: "said \"no\",\nthen ended"}})
	rows := must.Get(csv.NewReader(strings.NewReader(written(t, WriteCSV, report.Build(sample.Run{}, plan, samples)))).ReadAll())(t)
	last := len(rows[0]) - 1
	if rows[0][last] != "zebra_count" || rows[1][last] != "4" || rows[2][last] != "" {
		t.Errorf("last column %q %q %q", rows[0][last], rows[1][last], rows[2][last])
	}
	must.Equal(t, "tool-failed: said \"no\",\nthen ended", rows[2][slices.Index(rows[0], "failure")])
}

func TestBenchfmtIsReadByBenchstatsReader(t *testing.T) {
	r := reporttest.Quick()
	reader := benchfmt.NewReader(strings.NewReader(written(t, WriteBenchfmt, r)), "run.txt")
	results := 0
	names := make(map[string]int)
	for reader.Scan() {
		switch rec := reader.Result().(type) {
		case *benchfmt.SyntaxError:
			t.Error(rec)
		case *benchfmt.Result:
			results++
			names[rec.Name.String()]++
			if rec.GetConfig("suite") != "quick" || rec.GetConfig("kernel") != "6.18.3" || rec.GetConfig("cpu") == "" {
				t.Errorf("configuration %v", rec.Config)
			}
			seen := make(map[string]bool)
			for _, v := range rec.Values {
				if seen[v.Unit] {
					t.Errorf("%s has %s twice", rec.Name, v.Unit)
				}
				seen[v.Unit] = true
			}
		}
	}
	must.Succeed(t, reader.Err())
	must.Equal(t, 8*6-1, results)
	if names["Stream/system=bridge-colocated/tool=builtin/offload=tcp"] != 6 || names["Rr/system=vxlan/tool=builtin/offload=tcp"] != 5 || len(names) != 8 {
		t.Errorf("names %v", names)
	}
	for unit, want := range map[string]string{"bit/s": "higher", "sender-cpu-sec/B": "lower", "transactions/s": "higher"} {
		if got := reader.Units().Get(unit, "better"); got == nil || got.Value != want {
			t.Errorf("%s: better is %v, want %s", unit, got, want)
		}
		if got := reader.Units().Get(unit, "assume"); got == nil || got.Value != "nothing" {
			t.Errorf("%s: assume is %v", unit, got)
		}
	}
}

// The test makes the same projection as `benchstat -col /system`: one row for each
// workload, one column for each system.
func TestBenchfmtLinesUpSystemsAsColumns(t *testing.T) {
	var parser benchproc.ProjectionParser
	systems := must.Get(parser.Parse("/system", nil))(t)
	rest := must.Get(parser.Parse(".fullname,.config", nil))(t)
	cells := make(map[string]map[string]float64)
	reader := benchfmt.NewReader(strings.NewReader(written(t, WriteBenchfmt, reporttest.Quick())), "run.txt")
	for reader.Scan() {
		if res, ok := reader.Result().(*benchfmt.Result); ok {
			key := rest.Project(res).String()
			if cells[key] == nil {
				cells[key] = make(map[string]float64)
			}
			v, _ := res.Value("bit/s")
			cells[key][systems.Project(res).Get(systems.Fields()[0])] = v
		}
	}
	if len(cells) != 2 {
		t.Fatalf("%d rows, want stream and rr: %v", len(cells), cells)
	}
	for key, row := range cells {
		for _, system := range []string{"raw", "bridge", "bridge-colocated", "vxlan"} {
			if v, ok := row[system]; !ok || strings.Contains(key, "Stream") && v < 8e9 {
				t.Errorf("row %s, column %s: %v", key, system, v)
			}
		}
	}
}

func TestBenchfmtUnitsAreDistinct(t *testing.T) {
	seen := make(map[string]sample.Metric)
	for _, info := range sample.Known() {
		unit := benchUnit(info.Metric)
		if other, twice := seen[unit]; twice || strings.ContainsAny(unit, " \t_") {
			t.Errorf("%s has the unit %q of %s", info.Metric, unit, other)
		}
		seen[unit] = info.Metric
	}
}

func TestBenchfmtNamesAreTidy(t *testing.T) {
	for id, want := range map[string]string{
		"bridge/stream":       "Stream/system=bridge/tool=my_tool/offload=tcp",
		"a b=c/tcp 64k/small": "Tcp_64k_small/system=a_b_c/tool=my_tool/offload=tcp",
		"raw/64k":             "Workload64k/system=raw/tool=my_tool/offload=tcp",
		"alone":               "Udp/system=alone/tool=my_tool/offload=tcp",
	} {
		sc := &model.Scenario{ID: id, Tool: "my tool", Offload: "tcp", Workload: suite.Workload{Name: "udp"}}
		if got := string(benchName(sc)); got != want {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
	}
	last := benchfmt.Name(benchName(&model.Scenario{ID: "vm-2/stream-8"}))
	if _, parts := last.Parts(); len(parts) != 1 || string(parts[0]) != "/system=vm_2" {
		t.Errorf("%s: the parts are %q, want no part that reads as GOMAXPROCS", last, parts)
	}
}

func TestWritersPassOnTheirError(t *testing.T) {
	r := reporttest.Quick()
	for name, write := range map[string]func(io.Writer, *model.Report) error{"json": WriteJSON, "csv": WriteCSV, "benchfmt": WriteBenchfmt} {
		if err := write(brokenPipe{}, r); !errors.Is(err, io.ErrClosedPipe) || !strings.Contains(err.Error(), r.Run.ID) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
