package drawings

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/lab/profile/folded"
	"windtunnel/lab/report"
	"windtunnel/lab/report/browsertest"
	"windtunnel/lab/report/document"
	"windtunnel/lab/report/export"
	"windtunnel/lab/report/html"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/published"
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/report/rejected"
	"windtunnel/lab/report/reporttest"
	"windtunnel/lab/report/sentences"
	"windtunnel/lab/report/tables"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

func writePage(w io.Writer, r *model.Report) error {
	d, err := Page(r)
	if err != nil {
		return err
	}
	return html.Write(w, d)
}

func written(t testing.TB, r *model.Report) []byte {
	t.Helper()
	var b bytes.Buffer
	must.Succeed(t, writePage(&b, r))
	return b.Bytes()
}

// block returns the content of the script element with this id.
func block(t *testing.T, page []byte, id string) string {
	t.Helper()
	found := regexp.MustCompile(`(?s)<script type="[a-z/]+" id="` + id + `">(.*?)</script>`).FindSubmatch(page)
	if found == nil {
		t.Fatalf("the page has no block %q", id)
	}
	return string(found[1])
}

func TestPageSaysEverythingWithoutJavaScript(t *testing.T) {
	r := reporttest.Quick()
	text := browsertest.Readable(written(t, r))
	want := slices.Concat([]string{r.Run.Title, r.Run.Description, r.Run.ID}, sentences.Brief(r), r.Notes)
	for _, f := range tables.Of(r) {
		want = append(want, f.Title)
		for _, c := range f.Columns {
			want = append(want, c.Name)
			for _, cell := range c.Cells {
				want = append(want, cell.Text, cell.Range)
			}
		}
	}
	for _, trouble := range rejected.Troubles(r) {
		want = append(want, trouble.Scenario, trouble.Reason)
	}
	for _, row := range published.Section(r).Tables[0].Rows {
		for _, cell := range row.Cells {
			want = append(want, cell.Text)
		}
	}
	for _, f := range slices.Concat(report.Facts(r), report.Settings(r)) {
		want = append(want, f.Name, f.Text)
	}
	for _, m := range report.Method(r) {
		want = append(want, m.Name, m.Text)
	}
	want = append(want, report.Repeat(r)...)
	if len(want) < 200 {
		t.Fatalf("only %d texts to look for: the sample run has lost its content", len(want))
	}
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("the page lacks %q", w)
		}
	}
}

func TestCodeInSentencesIsMarkedAsCode(t *testing.T) {
	r := reporttest.Quick()
	r.Notes = append(r.Notes, "one ` alone, and <b>")
	page := string(written(t, r))
	for _, want := range []string{"load the module with <code>modprobe macvlan</code>", "one ` alone, and &lt;b&gt;"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	text := regexp.MustCompile(`(?s)<(script|style|pre)[ >].*?</(script|style|pre)>`).ReplaceAllString(page, "")
	must.Equal(t, 1, strings.Count(text, "`"))
}

func TestPageAsksTheNetworkForNothing(t *testing.T) {
	page := written(t, reporttest.Quick())
	outside := regexp.MustCompile(`(?i)\b(src|href|action|srcset|poster)\s*=\s*["']?(https?:|//)|@import|url\(`)
	body := regexp.MustCompile(`(?s)<script>.*?</script>`).ReplaceAll(page, nil)
	if found := outside.Find(body); found != nil {
		t.Errorf("the page refers to something outside: %q", found)
	}
	for _, tag := range []string{"<link", "<img", "<iframe", "<object", "<embed"} {
		if bytes.Contains(body, []byte(tag)) {
			t.Errorf("the page holds %s", tag)
		}
	}
	if !bytes.Contains(page, []byte("default-src &#39;none&#39;")) {
		t.Error("the page has no policy that forbids loading")
	}
}

// attacks are names that end or change the HTML, the attribute or the script that contains
// a name.
var attacks = []string{
	`</script><script>window.hacked=1</script>`,
	`"><img src=x onerror=window.hacked=1>`,
	`'-window.hacked=1-'`,
	`<!--<script>`,
	`{{.Policy}}`,
	`</style><svg onload=window.hacked=1>`,
	"\u2028window.hacked=1//\x00\x1b[31m",
	`{head|x}${window.hacked=1}`,
}

// hostile is the sample run with attacks in every name that comes from a suite,
// a tool or the machine.
func hostile(t testing.TB) *model.Report {
	t.Helper()
	run, plan, samples := reporttest.Sample()
	n := 0
	evil := func(text string) string { n++; return text + attacks[n%len(attacks)] }
	run.ID, run.Title, run.Suite = evil("id"), evil("title"), evil("suite")
	e := &run.Environment
	e.Hostname, e.Kernel, e.CPUModel, e.Fabric, e.Revision = evil("h"), evil("k"), evil("c"), evil("f"), evil("r")
	e.Sysctls = map[string]string{evil("sysctl"): evil("value")}
	plan.Description, plan.Notes = evil("description"), []string{evil("note")}
	ids := make(map[string]string)
	for i := range plan.Scenarios {
		s := &plan.Scenarios[i]
		ids[s.ID] = attacks[i%len(attacks)] + s.ID
		s.ID = ids[s.ID]
		s.Title, s.System, s.Tool, s.Workload.Name = evil("title"), evil("system"), evil("tool"), evil("workload")
	}
	for i := range plan.Comparisons {
		c := &plan.Comparisons[i]
		c.Title, c.Baseline, c.Subject = evil("c"), ids[c.Baseline], ids[c.Subject]
	}
	for i := range plan.Published {
		p := &plan.Published[i]
		p.Scenario, p.Source, p.Printed, p.Note = ids[p.Scenario], evil("s"), evil("p"), evil("n")
	}
	skipped := make(map[string]string)
	for id, why := range run.Skipped {
		skipped[ids[id]] = evil(why)
	}
	run.Skipped = skipped
	for i := range samples {
		s := &samples[i]
		s.Scenario = ids[s.Scenario]
		if s.Failure != nil {
			s.Failure.Message = evil("m")
		}
		for j := range s.Hops {
			h := &s.Hops[j]
			h.Device, h.Role, h.Endpoint = evil("d"), evil(h.Role), evil("e")
		}
		for j := range s.Commands {
			s.Commands[j] = sample.Command{Role: evil("r"), On: evil("o"), Argv: []string{evil("a"), evil("b")}}
		}
	}
	r := report.Build(run, plan, samples)
	hostileRigor(t, r, evil)
	return r
}

// hostileRigor adds what rigorous has, with attacks in all of its names.
func hostileRigor(t testing.TB, r *model.Report, evil func(string) string) {
	t.Helper()
	first, last := r.Scenarios[0].ID, r.Scenarios[1].ID
	r.Ladders = []model.Ladder{streamLadder(r)}
	l := &r.Ladders[0]
	l.Title = evil("ladder")
	for i := range l.Steps {
		l.Steps[i].Scenario, l.Steps[i].Name = []string{first, last}[i%2], evil("step")
	}
	r.Hypotheses = claims()
	for i := range r.Hypotheses {
		h := &r.Hypotheses[i]
		h.Claim, h.Metric, h.Baseline, h.Printed, h.Why = evil("claim"), evil("metric"), first, evil("asked"), evil("why")
		for j := range h.Observed {
			h.Observed[j].Subject = last
		}
	}
	s := &r.Scenarios[0].Samples[0]
	s.Gates = []sample.Gate{{Name: sample.GateName(evil("gate")), Message: evil("message"), Value: 1, Limit: 2, Unit: evil("unit")}}
	r.Validity = model.Validity{Attempts: 2, Valid: 1, Gated: 1, Missing: map[string]int{first: 1}, Gates: []model.GateCount{{Name: s.Gates[0].Name, Trials: 1, Worst: s.Gates[0]}}}
	r.Precision = &model.Precision{Wanted: 0.02, Why: evil("why"), Widest: []model.Imprecise{{Subject: first, Baseline: last, Metric: sample.Metric(evil("m")), HalfWidth: 0.1}}}
	for _, id := range []string{first, last} {
		p := &folded.Profile{Node: "a", Side: evil("side"), Seconds: 1, Rate: 100, Clock: evil("clock"), Warnings: []string{evil("warning")}}
		p.Side = r.Scenarios[0].ID // the same of both, so that they can be compared
		for range attacks {
			p.Stacks = append(p.Stacks, folded.Stack{Comm: evil("c"), Category: evil("category"), Frames: []string{evil("f"), evil("g")}, Count: 5, Nanos: 50_000_000})
		}
		r.Profiles = append(r.Profiles, packedProfile(t, id, p, 0.4))
	}
}

func TestHostileNamesStayText(t *testing.T) {
	page := written(t, hostile(t))
	must.Equal(t, 5, bytes.Count(bytes.ToLower(page), []byte("<script")))
	for _, tag := range []string{"<img", "<svg onload", "</style><svg", "<!--"} {
		if bytes.Contains(page, []byte(tag)) {
			t.Errorf("the page holds %q", tag)
		}
	}
	var c document.Charts
	must.Succeed(t, json.Unmarshal([]byte(block(t, page, "data")), &c))
	if len(c.Panels) == 0 || !strings.Contains(c.Panels[0].Rows[0].ID, attacks[0]) {
		t.Errorf("the names do not reach the charts as they are: %+v", c.Panels)
	}
}

func TestSectionsWithoutDataAreLeftOut(t *testing.T) {
	r := &model.Report{Run: model.RunInfo{ID: "r", Suite: "s", Title: "nothing yet", Status: sample.Running}}
	page := string(written(t, r))
	for _, id := range []string{"h-cards", "h-streams", "h-exchange", "h-ratios", "h-series", "h-path", "h-published-beside-measured", "h-skipped-and-failed", "h-notes", "h-validity", "h-hypotheses", "h-ladders", "h-trials", "h-profiles", "flames"} {
		if strings.Contains(page, `id="`+id+`"`) {
			t.Errorf("the page of an empty run has the section %s", id)
		}
	}
	for _, id := range []string{"answer", "h-environment", "h-method", "h-to-repeat"} {
		if !strings.Contains(page, `id="`+id+`"`) {
			t.Errorf("the page of an empty run lacks the section %s", id)
		}
	}
}

func TestEveryTrialIsAPoint(t *testing.T) {
	var c document.Charts
	must.Succeed(t, json.Unmarshal([]byte(block(t, written(t, reporttest.Quick()), "data")), &c))
	points := make(map[string]int)
	for _, p := range c.Panels {
		for _, r := range p.Rows {
			for _, b := range r.Bars {
				if b != nil {
					points[p.ID] += len(b.Points)
				}
			}
		}
	}
	// Four systems in six blocks; the colocated one has no receiver, and one
	// trial of request/response failed.
	want := map[string]int{"streams-main": 24, "streams-cpu": 24 + 18, "exchange-main": 23, "exchange-cpu": 23 + 17, "exchange-latency": 0}
	for id, n := range want {
		if points[id] != n {
			t.Errorf("%s has %d points, want %d", id, points[id], n)
		}
	}
	if len(c.Series) != 4 || len(c.Series[0].Trials) != reporttest.Blocks || len(c.Series[0].Trials[0].At) != 30 {
		t.Errorf("time series: %d scenarios, want 4 with 6 trials of 30 points", len(c.Series))
	}
}

func unpacked(t *testing.T, page []byte) []byte {
	t.Helper()
	packed := must.Get(base64.StdEncoding.DecodeString(block(t, page, "raw")))(t)
	z := must.Get(gzip.NewReader(bytes.NewReader(packed)))(t)
	return must.Get(io.ReadAll(z))(t)
}

func TestDownloadIsTheReportAsJSON(t *testing.T) {
	r := reporttest.Quick()
	var want bytes.Buffer
	must.Succeed(t, export.WriteJSON(&want, r))
	if got := unpacked(t, written(t, r)); !bytes.Equal(got, want.Bytes()) {
		t.Errorf("the download of %d bytes is not the report's JSON of %d", len(got), want.Len())
	}
}

// large is a run of n samples, all different, whose streams have series of
// this many points.
func large(n, points int) *model.Report {
	run, plan, samples := reporttest.Sized((n + 7) / 8)
	for i := range samples {
		s := &samples[i]
		if len(s.Series) == 0 {
			continue
		}
		series := make([]sample.Point, points)
		for j := range series {
			series[j] = s.Series[j%len(s.Series)]
			series[j].At = float64(j) / 10
			series[j].Bits *= 1 + float64(j*j%97)/1e4
		}
		s.Series = series
	}
	return report.Build(run, plan, samples)
}

func TestPageOfALargeRunStaysSmallAndSaysWhatItLeavesOut(t *testing.T) {
	must.Long(t)
	const most = 6 << 20
	for _, size := range []struct{ samples, points int }{{1_000, 30}, {1_000, 600}, {4_000, 150}} {
		page := written(t, large(size.samples, size.points))
		t.Logf("%d samples of %d points: %.1f MiB", size.samples, size.points, float64(len(page))/(1<<20))
		if len(page) > most {
			t.Errorf("the page of %d samples of %d points has %d bytes, more than %d", size.samples, size.points, len(page), most)
		}
		if !strings.Contains(browsertest.Readable(page), "it holds the time series and per-hop counters of") {
			t.Errorf("the page of %d samples does not say which trials it holds whole", size.samples)
		}
		if raw := block(t, page, "raw"); raw == "" && !strings.Contains(browsertest.Readable(page), "too large for this page") {
			t.Errorf("the page of %d samples has no download and does not say why", size.samples)
		}
	}
}

func TestColoursBelongToSystems(t *testing.T) {
	got := paints(reporttest.Quick())
	if got["raw/stream"].Colour != 0 || got["bridge/stream"].Colour == 0 {
		t.Errorf("raw is not neutral, or bridge is: %v", got)
	}
	if got["bridge/stream"] != got["bridge/rr"] || got["bridge/stream"].Colour != got["bridge-colocated/rr"].Colour {
		t.Errorf("one system has several colours: %v", got)
	}
	if !got["bridge-colocated/rr"].Light || got["bridge/rr"].Light || got["vxlan/rr"].Colour == got["bridge/rr"].Colour {
		t.Errorf("placements or systems look alike: %v", got)
	}
}

func TestChangesAreWrittenAsPeopleDo(t *testing.T) {
	for ratio, want := range map[float64]string{0.784: "−21.6 %", 1.467: "+46.7 %", 1: "0.0 %", 0.99999: "0.0 %", 3.5: "+250 %", 0.004: "−99.6 %"} {
		if got := change(ratio); got != want {
			t.Errorf("a ratio of %v is %q, want %q", ratio, got, want)
		}
	}
}

func TestCardColoursOnlyWhatTheTrialsDecide(t *testing.T) {
	iv := quantity.Interval{Median: 0.9, Low: 0.8, High: 0.95, N: 6, Level: 0.97}
	line := func(m sample.Metric, v model.Verdict, iv quantity.Interval) cardLine {
		return costLine("x", &model.Comparison{Metric: m, Ratio: iv, Verdict: v})
	}
	if l := line(sample.Throughput, model.Differs, iv); l.Tone != "worse" || l.Big != "−10.0 %" || l.Small != "[−20.0, −5.0]" {
		t.Errorf("less throughput: %+v", l)
	}
	if l := line(sample.SenderCPUPerByte, model.Differs, iv); l.Tone != "better" {
		t.Errorf("less CPU: %+v", l)
	}
	few := iv
	few.N = 3
	if l := line(sample.Throughput, model.TooFew, few); l.Tone != "" || l.Small != "[−20.0, −5.0] in 3 trials" {
		t.Errorf("three trials: %+v", l)
	}
	alike := iv
	alike.High = 1.1
	if l := line(sample.Throughput, model.Alike, alike); l.Big != "no difference" {
		t.Errorf("an interval that holds 1: %+v", l)
	}
}

func TestReportOfManyWorkloadsNamesEveryScenario(t *testing.T) {
	run, plan, samples := reporttest.Sample()
	// A second stream of each system, so that the group alone is no name.
	for _, s := range slices.Clone(plan.Scenarios) {
		if s.Workload.Kind == suite.TCPStream {
			old := s.ID
			s.ID += "-64k"
			s.Workload.Name += "-64k"
			s.Workload.Buffer = 64 << 10
			plan.Scenarios = append(plan.Scenarios, s)
			for _, sm := range slices.Clone(samples) {
				if sm.Scenario == old {
					sm.Scenario = s.ID
					samples = append(samples, sm)
				}
			}
		}
	}
	text := browsertest.Readable(written(t, report.Build(run, plan, samples)))
	for _, name := range []string{"bridge/stream", "bridge/stream-64k", "vxlan/stream-64k"} {
		if !strings.Contains(text, `</i>`+name) {
			t.Errorf("no row is named %s", name)
		}
	}
}

func BenchmarkWrite(b *testing.B) {
	r := large(1_000, 30)
	for b.Loop() {
		must.Succeed(b, writePage(io.Discard, r))
	}
}
