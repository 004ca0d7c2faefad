package report

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/charmbracelet/lipgloss"
	"github.com/google/go-cmp/cmp"

	"windtunnel/lab/report/reporttest"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

var update = flag.Bool("update", false, "write what the tests get into testdata/*.golden")

// golden compares with testdata/NAME.golden.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("differs from %s (go test -update writes it anew):\n%s", file, diff)
	}
}

func tabled(t *testing.T, r *Report, o TableOptions) string {
	t.Helper()
	var b bytes.Buffer
	if err := WriteTable(&b, r, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestTableOnAWideTerminal(t *testing.T) {
	golden(t, "table-140", tabled(t, quick(t), TableOptions{Width: 140}))
}

func TestTableOnANarrowTerminal(t *testing.T) {
	golden(t, "table-80", tabled(t, quick(t), TableOptions{Width: 80}))
}

func TestTableInColour(t *testing.T) {
	golden(t, "table-colour", tabled(t, quick(t), TableOptions{Width: 110, Color: true}))
}

func TestTableOfTwoTrialsWithoutComparison(t *testing.T) {
	run, plan, samples := reporttest.Sized(2)
	plan.Comparisons, plan.Published = nil, nil
	golden(t, "table-two-trials", tabled(t, Build(run, plan, samples), TableOptions{Width: 100}))
}

func TestTableKeepsToTheWidth(t *testing.T) {
	for width := 50; width <= 160; width += 5 {
		for _, line := range strings.Split(tabled(t, quick(t), TableOptions{Width: width}), "\n") {
			if w := lipgloss.Width(line); w > width {
				t.Errorf("at %d columns a line has %d: %q", width, w, line)
			}
		}
	}
}

func TestTableHasEscapesOnlyInColour(t *testing.T) {
	if strings.Contains(tabled(t, quick(t), TableOptions{Width: 100}), "\x1b") {
		t.Error("escape sequences without colour")
	}
	coloured := tabled(t, quick(t), TableOptions{Width: 100, Color: true})
	if !strings.Contains(coloured, "\x1b[1m") {
		t.Error("no escape sequences in colour")
	}
	plain := regexp.MustCompile(`\x1b\[[0-9;]*m`).ReplaceAllString(coloured, "")
	if diff := cmp.Diff(tabled(t, quick(t), TableOptions{Width: 100}), plain); diff != "" {
		t.Errorf("colour changes the text: %s", diff)
	}
}

// A narrow terminal shows every column. Columns that do not fit are in a second
// table below the first.
func TestANarrowTableLeavesNoColumnOut(t *testing.T) {
	for _, width := range []int{60, 80, 100} {
		narrow := tabled(t, quick(t), TableOptions{Width: width})
		for _, f := range quick(t).Figures() {
			for _, c := range f.Columns {
				for i, cell := range c.Cells {
					if cell.Text != "" && !strings.Contains(narrow, cell.Text) {
						t.Errorf("at %d columns %s of %s is left out", width, c.Name, f.Names[i])
					}
				}
			}
		}
		if n, wide := strings.Count(narrow, "\nscenario "), strings.Count(tabled(t, quick(t), TableOptions{Width: 200}), "\nscenario "); n <= wide {
			t.Errorf("at %d columns there are %d tables, at 200 %d", width, n, wide)
		}
	}
}

// At 100 columns the report shows the datagrams sent and received, both kinds of
// loss, and the limit.
func TestATerminalOf100ColumnsShowsDatagramsAndLimits(t *testing.T) {
	run, plan := twoSystems()
	var samples []sample.Sample
	for i := range plan.Scenarios {
		plan.Scenarios[i].Workload.Kind = suite.UDPStream
		for block := range 8 {
			samples = append(samples, sample.Sample{Scenario: plan.Scenarios[i].ID, Block: block, Limit: sample.ReceiverLimit, Metrics: sample.Metrics{
				sample.Throughput: 3.21e9, sample.SenderCPU: 99, sample.ReceiverCPU: 98, sample.SenderCPUPerByte: 0.31, sample.ReceiverCPUPerByte: 0.42, sample.Capacity: 5.1e9,
				sample.DatagramsSent: 432e3, sample.DatagramsReceived: 287e3, sample.LossRatio: 0.336, sample.SocketLoss: 0.314, sample.PathLoss: 0.0223,
			}})
		}
	}
	text := tabled(t, Build(run, plan, samples), TableOptions{Width: 100})
	for _, want := range []string{"432", "287", "33.6", "31.4", "2.23", "limited by"} {
		if !strings.Contains(text, want) {
			t.Errorf("lacks %q:\n%s", want, text)
		}
	}
}

func TestTableLeavesOutColumnsThatNoRowHas(t *testing.T) {
	run, plan, samples := reporttest.Sample()
	for i := range samples {
		delete(samples[i].Metrics, sample.ReceiverCPU)
		delete(samples[i].Metrics, sample.Retransmits)
	}
	heads := func(r *Report) string {
		names := ""
		for _, f := range r.Figures() {
			for _, c := range f.Columns {
				names += c.Key + " "
			}
		}
		return names
	}
	if got := heads(Build(run, plan, samples)); strings.Contains(got, "receiver_cpu_percent") || strings.Contains(got, "retransmits") {
		t.Errorf("columns without figures: %s", got)
	}
	if got := heads(quick(t)); !strings.Contains(got, "receiver_cpu_percent") || strings.Contains(got, "loss_ratio") || strings.Contains(got, "errors") {
		t.Errorf("columns of the sample run: %s", got)
	}
}

func TestTableNamesEveryBaselineWhereTheyDiffer(t *testing.T) {
	run, plan, samples := reporttest.Sample()
	for i, c := range plan.Comparisons {
		if strings.HasPrefix(c.Subject, "vxlan") {
			plan.Comparisons[i].Baseline = "bridge/" + strings.TrimPrefix(c.Subject, "vxlan/")
		}
	}
	text := tabled(t, Build(run, plan, samples), TableOptions{Width: 160})
	if !strings.Contains(text, "baseline") || !regexp.MustCompile(`vxlan .* bridge `).MatchString(text) || strings.Contains(text, "ratio to\n") {
		t.Errorf("the baselines are not told apart:\n%s", text)
	}
}

func TestTableMarksRatiosThatShowNoDifference(t *testing.T) {
	_, plan := twoSystems()
	var samples []sample.Sample
	samples = append(samples, column("a/stream", sample.Throughput, around(10e9, 0.03, 8, 0)...)...)
	samples = append(samples, column("b/stream", sample.Throughput, around(10e9, 0.03, 8, 1)...)...)
	text := tabled(t, Build(sample.Run{ID: "r"}, plan, samples), TableOptions{Width: 100})
	if !strings.Contains(text, "] ~\n") && !strings.Contains(text, "] ~ ") || !strings.Contains(text, "no difference shows") {
		t.Errorf("no mark at a ratio whose interval holds 1:\n%s", text)
	}
}

func TestTableObeysNothingThatATextSays(t *testing.T) {
	r := quick(t)
	r.Run.Title = "evil\x1b]0;title\x07\r\n\u202e"
	r.Scenarios[0].ID = "raw\x1b[2J/stream"
	r.Notes = []string{"note\x9b31m"}
	text := tabled(t, r, TableOptions{Width: 100})
	if i := strings.IndexFunc(text, func(c rune) bool { return c != '\n' && (c < ' ' || c >= 0x7f && c < 0xa0 || c == 0x202e) }); i >= 0 {
		t.Errorf("a control character reaches the terminal: %q", text[i:min(len(text), i+20)])
	}
}

func TestTableOfAnEmptyRunIsShort(t *testing.T) {
	text := tabled(t, &Report{Run: RunInfo{ID: "r1", Title: "nothing"}}, TableOptions{})
	if text != "nothing\nr1\n" {
		t.Errorf("an empty run is %q", text)
	}
}

func TestWritersReportAFailingWriter(t *testing.T) {
	full := errors.New("disk full")
	if err := WriteTable(failing{full}, quick(t), TableOptions{}); !errors.Is(err, full) {
		t.Errorf("table: %v", err)
	}
	if err := WriteMarkdown(failing{full}, quick(t)); !errors.Is(err, full) {
		t.Errorf("Markdown: %v", err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func TestFiguresHaveThreeDigitsAndBoundsThatDiffer(t *testing.T) {
	for _, c := range []struct {
		metric      sample.Metric
		iv          Interval
		median, rng string
	}{
		{sample.Throughput, Interval{Median: 11.04e9, Low: 10.4e9, High: 11.1e9, N: 6}, "11.0", "[10.4, 11.1]"},
		{sample.Throughput, Interval{Median: 9.512e9, Low: 9.509e9, High: 9.516e9, N: 6}, "9.51", "[9.51, 9.52]"},
		{sample.Throughput, Interval{Median: 9.512e9, Low: 9.511e9, High: 9.513e9, N: 6}, "9.512", "[9.511, 9.513]"},
		{sample.Throughput, Interval{Median: 250e3, Low: 250e3, High: 250e3, N: 1}, "250", ""},
		{sample.SenderCPU, Interval{Median: 99.998, Low: 99.997, High: 100, N: 2}, "100", "[100, 100]"},
		{sample.SenderCPUPerByte, Interval{Median: 0.05678, Low: 0.05, High: 0.06, N: 6}, "0.0568", "[0.0500, 0.0600]"},
		{sample.LossRatio, Interval{Median: 0.0123, Low: 0.01, High: 0.02, N: 6}, "1.23", "[1.00, 2.00]"},
		{sample.Retransmits, Interval{Median: 123456, Low: 100000, High: 200000, N: 6}, "123,456", "[100,000, 200,000]"},
	} {
		median, rng := ScaleOf(c.metric, c.iv.Median).Figure(c.iv)
		if median != c.median || rng != c.rng {
			t.Errorf("%s of %v is %q %q, want %q %q", c.metric, c.iv.Median, median, rng, c.median, c.rng)
		}
	}
}

func TestPrintPutsTheUnitWhereItBelongs(t *testing.T) {
	for _, c := range []struct {
		metric sample.Metric
		v      float64
		want   string
	}{
		{sample.Throughput, 9.996e9, "10.0 Gbit/s"}, {sample.Throughput, 0, "0 bit/s"}, {sample.Transactions, 830, "830/s"},
		{sample.Transactions, 27_400, "27.4 k/s"}, {sample.LatencyP50, 31_000, "31.0 µs"}, {sample.MSS, 1448, "1.41 KiB"},
		{sample.SegmentsPerSKB, 22.5, "22.5"}, {"unknown", 1.5, "1.50"},
	} {
		if got := ScaleOf(c.metric, c.v).Print(c.v); got != c.want {
			t.Errorf("%s %v is %q, want %q", c.metric, c.v, got, c.want)
		}
	}
}

func TestPublishedRatioIsToThePublishedBaseline(t *testing.T) {
	list := quick(t).Beside()
	if len(list) != 3 {
		t.Fatalf("%d figures, want 3", len(list))
	}
	v := list[1]
	if v.Baseline != "raw/stream" || v.PublishedRatio == nil || v.MeasuredRatio == nil {
		t.Fatalf("vxlan/stream: %+v", v)
	}
	if got := *v.PublishedRatio; got < 0.2159 || got > 0.2160 {
		t.Errorf("1592.691 of 7375.159 is %v", got)
	}
	if list[0].PublishedRatio != nil || list[2].MeasuredRatio != nil {
		t.Error("a baseline has a ratio to itself")
	}
}

func TestTroublesGiveEveryReasonOnce(t *testing.T) {
	got := quick(t).Troubles()
	want := []Trouble{
		{"bridge/stream", "repeated 1 trial", sample.ToolHung, "builtin client on a1 did not end within 12 s and was killed; the trial is repeated"},
		{"vxlan/rr", "1 of 6 trials without figures", sample.NoResult, "builtin client on a1 ended well but printed no result"},
		{"macvlan/stream", "skipped", "", "this kernel has no macvlan: load the module with `modprobe macvlan`"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestFabricOfTheMethodIsThatOfTheRun(t *testing.T) {
	r := quick(t)
	text := func() string {
		all := ""
		for _, p := range r.Method() {
			all += p.Title + ": " + p.Text + "\n"
		}
		return all
	}
	if !strings.Contains(text(), "two NICs and a wire") || strings.Contains(text(), "veth") || !strings.Contains(text(), "Offload tcp") {
		t.Errorf("a run on the wire: %s", text())
	}
	for i := range r.Scenarios {
		r.Scenarios[i].Fabric.Kind, r.Scenarios[i].Fabric.Offload = suite.Veth, suite.OffloadNone
	}
	if strings.Contains(text(), "a wire") || !strings.Contains(text(), "plain veth pair") || !strings.Contains(text(), "Offload none") {
		t.Errorf("a run on a veth pair: %s", text())
	}
}

func TestShellSplitsTheLineIntoTheSameWords(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no sh")
	}
	argv := []string{"a b", "", "it's", `"$HOME"`, "-m", "1,0,10.0.0.2", "`id`", "*", "x;y", "\\", "#c", "~", "ü"}
	out, err := exec.Command(sh, "-c", "printf '%s\\0' "+Shell(argv)).Output()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(argv, strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")); diff != "" {
		t.Error(diff)
	}
	if got := Shell([]string{"windtunnel", "-m", "1,0,10.0.0.2"}); got != "windtunnel -m 1,0,10.0.0.2" {
		t.Errorf("plain words are quoted: %s", got)
	}
}

func TestWrapKeepsToTheWidthAndIndents(t *testing.T) {
	if got := Wrap("• one two three\x1b[2J four", 11, "  "); got != "• one two\n  three [2J\n  four" {
		t.Errorf("%q", got)
	}
	if got := Wrap("longer-than-the-width", 5, ""); got != "longer-than-the-width" {
		t.Errorf("%q", got)
	}
}
