package suites

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"windtunnel/lab/suite"
)

// transcribed are the documents' tables, typed from them a second time: a line
// a row, its name and then its figures as printed; the first line has the
// columns, parted by bars.
var transcribed = map[string]map[string]string{
	"contrail-windows": {
		"sender": `A|B|C|D|E|F
Throughput (Mbit/s)|7375.159|1592.691|1956.786|658.291|235.852|98.734
Avg. CPU %|14.799|15.843|57.098|40.992|29.373|34.544`,
		"receiver": `A|B|C|D|E|F
Throughput (Mbit/s)|7375.198|1592.698|1948.824|657.520|235.784|98.732
Avg. CPU %|21.161|42.278|57.086|48.184|25.064|25.763`,
		"appendix-sender": `A|B|C|D
Throughput (Mbit/s)|7375.159|1592.691|2313.072|2500.388
Avg. CPU %|14.799|15.843|36.044|34.294`,
		"appendix-receiver": `A|B|C|D
Throughput (Mbit/s)|7375.198|1592.698|2316.991|2501.5896
Avg. CPU %|21.161|42.278|69.274|76.055`,
		"eight-sender": `8 threads
Throughput (Mbit/s)|4845.864
Avg. CPU %|26.034`,
		"eight-receiver": `8 threads
Throughput (Mbit/s)|4845.932
Avg. CPU %|63.549`,
		"baseline-raw-a": `result
Throughput (MB/s)|921.895
Retransmits|32.2
Errors|0
Avg. cpu %|14.799`,
		"baseline-raw-b": `result
Throughput (MB/s)|921.900
Retransmits|0.1
Errors|0
Avg. cpu %|21.161`,
		"baseline-containers-sender": `result
Throughput (MB/s)|199.086
Retransmits|41.9
Errors|0
Avg. cpu %|15.843`,
		"baseline-containers-receiver": `result
Throughput (MB/s)|199.087
Retransmits|0
Errors|0
Avg. cpu %|42.278`,
	},
	"opencontrail": {
		"table1": `Throughput|Sender CPU|Receiver CPU
Linux bridge|9.41 Gbps|85 %|125 %
vRouter|9.18 Gbps|128 %|166 %`,
		"table2": `Throughput|CPU consumption
Linux bridge|13.9 Gbps|128 %
vRouter|13.1 Gbps|188 %`,
		"table3": `Request-response transactions
Linux bridge|11050 1/s
VRouter|10800 1/s`,
		"table4": `Throughput|CPU consumption
Linux bridge|18 Gbps|125 %
vRouter|17.4 Gbps|120 %`,
		"text": `throughput|sender CPU|receiver CPU|receiver CPU over MPLS over GRE|numbers between test runs|way
vRouter, unidirectional|9.18 Gbps|128 %|166 %|||
vRouter, bidirectional|13.1 Gbps|188 %|188 %|||
jumbo MTU, bidirectional, without sendfile|14 Gbps|||||
MPLS over UDP||||-15 %||
pinning|||||consistent|
workloads to any standard router||||||direct`,
	},
	"cloud-instances": {
		"results": `network interface|native qperf bandwidth|native qperf latency|weave qperf bandwidth|weave qperf latency|weave bandwidth compared to native
A0|5 Mbps|590 KB/sec|289 us|557 KB/sec|419 us|-16%
A1|100 Mbps|12.5 MB/sec|483 us|9.11 MB/sec|483 us|-27%
A2|200 Mbps|24.8 MB/sec|426 us|10.3 MB/sec|557 us|-58%
A3|400 Mbps|48 MB/sec|465 us|12 MB/sec|483 us|-75%
A8|not documented|310 MB/sec|94.2 us|51 MB/sec|188 us|-83%
D1|not documented|56.3 MB/sec|276 us|17 MB/sec|456 us|-69%
D2|not documented|117 MB/sec|178 us|24.6 MB/sec|446 us|- 79%`,
	},
}

// figures puts a table's figures in the form of transcribed; the units that its
// rows name, and that qperf's latency is one way, are left out.
func figures(p *suite.Plan, table string) string {
	var rows, columns []string
	cells := map[[2]string]string{}
	for _, f := range p.Published {
		if f.Table != table {
			continue
		}
		if !slices.Contains(rows, f.Row) {
			rows = append(rows, f.Row)
		}
		if !slices.Contains(columns, f.Column) {
			columns = append(columns, f.Column)
		}
		text := strings.TrimSuffix(f.Printed, " one-way")
		if strings.HasSuffix(f.Row, "(Mbit/s)") || strings.HasSuffix(f.Row, "(MB/s)") || strings.HasSuffix(strings.ToLower(f.Row), "cpu %") {
			text, _, _ = strings.Cut(text, " ")
		}
		cells[[2]string{f.Row, f.Column}] = text
	}
	lines := []string{strings.Join(columns, "|")}
	for _, row := range rows {
		line := row
		for _, column := range columns {
			line += "|" + cells[[2]string{row, column}]
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func TestPublishedTablesEqualThoseOfTheDocuments(t *testing.T) {
	for name, tables := range transcribed {
		p := plan(t, name)
		for table, want := range tables {
			if got := figures(p, table); got != want {
				t.Errorf("%s, %s:\n%s\nwant\n%s", name, table, got, want)
			}
		}
		for _, table := range p.Tables {
			of := strings.TrimSuffix(strings.TrimSuffix(table.Name, "-vm"), "-modelled") // the same figures beside other scenarios
			if _, known := tables[of]; !known {
				t.Errorf("%s: table %s is in no transcription", name, table.Name)
			} else if got := figures(p, table.Name); got != tables[of] {
				t.Errorf("%s, %s:\n%s\nwant\n%s", name, table.Name, got, tables[of])
			}
		}
		for _, f := range p.Published {
			if f.Table == "" {
				t.Errorf("%s: the figure %s of %s is in no table", name, f.Printed, f.Scenario)
			}
		}
	}
}

// Printed figures in the unit that their table says they are in.
func TestPublishedFiguresAreReadInTheirUnits(t *testing.T) {
	value := func(name, table, row, column string) float64 {
		t.Helper()
		for _, f := range plan(t, name).Published {
			if f.Table == table && f.Row == row && f.Column == column {
				return f.Value
			}
		}
		t.Fatalf("%s: no figure %s, %s, %s", name, table, row, column)
		return 0
	}
	for _, c := range []struct {
		suite, table, row, column string
		want                      float64
	}{
		{"contrail-windows", "sender", "Throughput (Mbit/s)", "A", 7375.159e6},
		{"contrail-windows", "baseline-raw-a", "Throughput (MB/s)", "result", 921.895 * 8 * (1 << 20)},
		{"contrail-windows", "baseline-containers-sender", "Throughput (MB/s)", "result", 199.086 * 8 * (1 << 20)},
		{"opencontrail", "table1", "vRouter", "Sender CPU", 1.28},
		{"opencontrail", "text", "MPLS over UDP", "receiver CPU over MPLS over GRE", 0.85},
		{"cloud-instances", "results", "A0", "native qperf bandwidth", 590e3 * 8},
		{"cloud-instances", "results", "A8", "native qperf bandwidth", 310e6 * 8},
		{"cloud-instances", "results", "A8", "native qperf latency", 2 * 94_200},
		{"cloud-instances", "results", "D2", "weave bandwidth compared to native", 0.21},
	} {
		if got := value(c.suite, c.table, c.row, c.column); math.Abs(got-c.want) > 1e-12*c.want {
			t.Errorf("%s, %s, %s, %s is %v, want %v", c.suite, c.table, c.row, c.column, got, c.want)
		}
	}
	// The slip that the notes state: MiB taken for MB.
	slip := value("contrail-windows", "baseline-raw-a", "Throughput (MB/s)", "result") / value("contrail-windows", "sender", "Throughput (Mbit/s)", "A")
	if math.Abs(slip-1.048576) > 1e-6 {
		t.Errorf("the two forms of the document part by %v, want 2^20 / 10^6", slip)
	}
	notes := strings.Join(plan(t, "contrail-windows").Notes, " ")
	for _, want := range []string{"4.6 % too low", "7733.4", "1670.1", "4.63", "C has 1.45 times the throughput of B and not 2 times, and D has 1.57 times", "default"} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes lack %q: %s", want, notes)
		}
	}
}

func TestFabricsOfCloudInstancesHaveTheirRates(t *testing.T) {
	const payload = 1448. / 1514 // of a frame at MTU 1500, with time stamps
	want := map[string]float64{"a0": 5e6, "a1": 100e6, "a2": 200e6, "a3": 400e6, "a8": 310e6 * 8 / payload, "d1": 56.3e6 * 8 / payload, "d2": 117e6 * 8 / payload}
	seen := map[string]bool{}
	for _, s := range plan(t, "cloud-instances").Scenarios {
		instance, model, _ := strings.Cut(s.Fabric.Name, "-")
		if math.Abs(float64(s.Fabric.Rate)-want[instance]) > 0.0005*want[instance] {
			t.Errorf("%s runs at %s bit/s, want %v", s.ID, strconv.FormatInt(s.Fabric.Rate, 10), want[instance])
		}
		if (s.Fabric.Delay > 0) != (model == "far") || (s.Fabric.CPUShare > 0) != (model == "share") {
			t.Errorf("%s: fabric %s", s.ID, s.Fabric)
		}
		seen[instance] = true
		if s.Tool != "qperf" {
			t.Errorf("%s uses %s", s.ID, s.Tool)
		}
	}
	if len(seen) != len(want) {
		t.Errorf("fabrics %v", seen)
	}
}

func TestContrailWindowsHasTheDocumentsArguments(t *testing.T) {
	p := plan(t, "contrail-windows")
	for _, s := range p.Scenarios {
		w := s.Workload
		switch {
		case w.Kind == suite.TCPStream && w.Name == "no-seg":
			if w.Buffer != 1390 || !w.PacketPerSend || !w.NoDelay || w.ReceiveBuffer != 2<<20 {
				t.Errorf("%s: %+v", s.ID, w)
			}
		case w.Kind == suite.TCPStream:
			if w.Buffer != 128<<10 || w.NoDelay || w.ReceiveBuffer != 2<<20 {
				t.Errorf("%s: %+v", s.ID, w)
			}
		}
	}
	if s := scenario(t, p, "bridge/stream-4-containers"); s.Pairs != 2 || s.Workload.Streams != 1 {
		t.Errorf("four containers: %d pairs of %d streams", s.Pairs, s.Workload.Streams)
	}
	if s := scenario(t, p, "bridge-8-cpus/stream-8-threads"); s.Pairs != 1 || s.Workload.Streams != 8 || s.Fabric.CPUs != 8 {
		t.Errorf("eight threads: %d pairs of %d streams on %d CPUs", s.Pairs, s.Workload.Streams, s.Fabric.CPUs)
	}
	for _, g := range []string{"raw", "bridge", "bridge-colocated", "vrouter"} {
		scenario(t, p, g+"/udp")
		scenario(t, p, g+"/udp-rr")
	}
	if s := scenario(t, p, "vrouter/stream"); s.System != "vrouter-mpls-udp" {
		t.Errorf("vrouter is %s", s.System)
	}
}

var cpuOf = regexp.MustCompile("_cpu_(cores|percent)$")

// A cause is of a figure with a ratio, or of a hypothesis: else no report shows it.
func TestEachCauseIsOfAFigureOfItsSuite(t *testing.T) {
	for _, name := range experiments {
		p := plan(t, name)
		for _, c := range p.Causes {
			c.Verdict = "" // a ruling belongs to the same figures as a cause
			alone := suite.Plan{Causes: []suite.Cause{c}}
			// of: the cause is of figure f, or of the row per byte that reports add to a CPU figure
			of := func(f suite.Published, baseline string) bool {
				return alone.CauseOf(f.Scenario, baseline, f.Metric) != "" || alone.CauseOf(f.Scenario, baseline, cpuOf.ReplaceAllString(f.Metric, "_cpu_ns_per_byte")) != ""
			}
			explains := slices.ContainsFunc(p.Published, func(f suite.Published) bool {
				return f.Baseline != "" && of(f, f.Baseline) || slices.ContainsFunc(p.Comparisons, func(o suite.Comparison) bool {
					return o.Subject == f.Scenario && of(f, o.Baseline)
				})
			}) || slices.ContainsFunc(p.Hypotheses, func(h suite.Hypothesis) bool {
				return slices.ContainsFunc(h.Subjects, func(subject string) bool { return alone.CauseOf(subject, h.Baseline, h.Metric) != "" })
			})
			if !explains {
				t.Errorf("%s: the cause of %s over %q (%v) is of no figure: %s", name, c.Subject, c.Baseline, c.Metrics, c.Cause)
			}
		}
	}
}
