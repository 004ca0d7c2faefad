package serve

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"windtunnel/internal/must"
	"windtunnel/lab/report/export"
	"windtunnel/lab/report/reporttest"
	"windtunnel/lab/results"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// store returns a new store for writing, and a second handle of it for reading.
func store(t testing.TB) (writer, reader *results.Store) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "windtunnel.db")
	for _, open := range []struct {
		into **results.Store
		results.Options
	}{{&writer, results.Options{}}, {&reader, results.Options{ReadOnly: true}}} {
		s := must.Get(results.Open(path, open.Options))(t)
		t.Cleanup(func() { _ = s.Close() })
		*open.into = s
	}
	return writer, reader
}

func put(t testing.TB, s *results.Store, run sample.Run, plan suite.Plan, samples []sample.Sample) {
	t.Helper()
	must.Succeed(t, s.CreateRun(run, plan))
	for i := range samples {
		must.Get(s.AppendSample(run.ID, samples[i]))(t)
	}
}

// later returns reporttest's run, n days later and with another ID. All its throughput
// changes by a factor.
func later(n int, factor float64) (sample.Run, suite.Plan, []sample.Sample) {
	run, plan, samples := reporttest.Sized(6)
	run.ID = fmt.Sprintf("202612%02d-093015-quick", n+1)
	run.Started, run.Finished, run.Seed = run.Started.AddDate(0, 0, n+1), run.Finished.AddDate(0, 0, n+1), uint64(n)
	for i := range samples {
		if v, ok := samples[i].Metrics[sample.Throughput]; ok {
			// The runs differ by more than their trials do, as runs on a real machine.
			samples[i].Metrics[sample.Throughput] = v * factor * (1 + 0.004*float64(n%3))
		}
	}
	return run, plan, samples
}

// filled returns a store with reporttest's run, two later ones, and a run in progress of
// another suite.
func filled(t testing.TB) (writer, reader *results.Store, running sample.Run, plan suite.Plan) {
	t.Helper()
	writer, reader = store(t)
	run, plan, samples := reporttest.Sample()
	put(t, writer, run, plan, samples)
	for n := range 2 {
		run, plan, samples := later(n, 1)
		put(t, writer, run, plan, samples)
	}
	running, _, _ = reporttest.Sample()
	running.ID, running.Suite, running.Status, running.Finished = "20270101-000000-slow", "slow", sample.Running, time.Time{}
	running.Started = running.Started.AddDate(1, 0, 0)
	put(t, writer, running, plan, samples[:3])
	return writer, reader, running, plan
}

// site serves a store on a real connection.
func site(t testing.TB, reader *results.Store, change ...func(*Options)) (*Site, string) {
	t.Helper()
	o := Options{Store: reader, Log: log.New(io.Discard, "", 0)}
	for _, f := range change {
		f(&o)
	}
	s := New(o)
	s.poll = 10 * time.Millisecond
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return s, server.URL
}

// answer is the server's response.
type answer struct {
	status int
	header http.Header
	body   string
}

// ask sends a request. headers are names and values; Host is one of them.
func ask(t testing.TB, method, address string, headers ...string) answer {
	t.Helper()
	r := must.Get(http.NewRequestWithContext(t.Context(), method, address, nil))(t)
	for i := 0; i+1 < len(headers); i += 2 {
		if r.Header.Set(headers[i], headers[i+1]); headers[i] == "Host" {
			r.Host = headers[i+1]
		}
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response := must.Get(client.Do(r))(t)
	defer response.Body.Close()
	body := must.Get(io.ReadAll(response.Body))(t)
	return answer{response.StatusCode, response.Header, string(body)}
}

func get(t testing.TB, address string, headers ...string) answer {
	t.Helper()
	return ask(t, http.MethodGet, address, headers...)
}

// expect fails unless the answer has the status and the texts.
func (a answer) expect(t testing.TB, what string, status int, texts ...string) {
	t.Helper()
	if a.status != status {
		t.Errorf("%s: status %d, want %d; body %.300q", what, a.status, status, a.body)
		return
	}
	for _, text := range texts {
		if !strings.Contains(a.body, text) {
			t.Errorf("%s: the body lacks %q", what, text)
		}
	}
}

func TestEveryPageShowsTheStore(t *testing.T) {
	_, reader, running, _ := filled(t)
	_, at := site(t, reader)
	for path, texts := range map[string][]string{
		"/":                                {"20261121-093015-quick", "20261202-093015-quick", `href="/runs/20270101-000000-slow/live"`, "lab-1", "4 runs", `type="checkbox" name="run"`, "2026-11-21 09:30"},
		"/?suite=slow":                     {"1 run of suite slow", running.ID},
		"/runs/20261121-093015-quick":      {"What a virtual network costs", `<nav class="links"`, "/trend?suite=quick", "vxlan/stream"},
		"/runs/20270101-000000-slow":       {"Live view"},
		"/runs/20270101-000000-slow/live":  {`data-running="true"`, "3 of 48 trials measured", "macvlan", "Newest attempts"},
		"/runs/20261121-093015-quick/live": {`data-running="false"`, "48 of 48 trials measured", "The run has ended"},
		"/compare":                         {`<select name="a" multiple required><option value="20270101-000000-slow">20270101-000000-slow · running</option>`, "throughput_bps"},
		"/compare?b=20261201":              {`<select name="b" multiple`, `<option value="20261201-093015-quick" selected>`},
		"/compare?a=20261121-093015-quick&b=20261202-093015-quick":                      {"Comparison of suite quick", "B over A", `href="/runs/20261121-093015-quick"`, "Change the comparison", "valid trials"},
		"/compare?a=20261121&b=20261201,20261202&metric=throughput_bps&scenario=bridge": {"bridge/stream", "20261201-093015-quick"},
		"/trend":             {`<option value="20261202-093015-quick">quick</option>`, "throughput_bps"},
		"/trend?suite=quick": {"Trend of suite quick", "3 runs", "bridge/stream", `href="/runs/20261202-093015-quick"`, "Other metrics and scenarios"},
		"/trend?suite=quick&scenario=raw&metric=sender_cpu_ns_per_byte": {"raw/stream", "sender CPU per byte"},
		"/static/style.css": {"--accent", ".attempts"},
		"/static/live.js":   {"EventSource"},
		"/static/icon.svg":  {"<svg"},
	} {
		a := get(t, at+path)
		a.expect(t, path, http.StatusOK, texts...)
		if strings.HasPrefix(path, "/static/") {
			again := get(t, at+path, "If-None-Match", a.header.Get("ETag"))
			again.expect(t, path+" again", http.StatusNotModified)
			continue
		}
		if _, err := html.Parse(strings.NewReader(a.body)); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if csp := a.header.Get("Content-Security-Policy"); !strings.HasPrefix(csp, "default-src 'none'; ") || !strings.HasSuffix(csp, "frame-ancestors 'none'") {
			t.Errorf("%s: policy %q", path, csp)
		}
		if head := ask(t, http.MethodHead, at+path); head.status != http.StatusOK || head.body != "" {
			t.Errorf("HEAD %s: status %d with %d bytes, want 200 without a body", path, head.status, len(head.body))
		}
	}
	get(t, at+"/favicon.ico").expect(t, "/favicon.ico", http.StatusNoContent)
}

func TestTheListOfRunsAsJSONIsThatOfTheCommand(t *testing.T) {
	_, reader, _, _ := filled(t)
	_, at := site(t, reader)
	list := must.Get(reader.Runs())(t)
	var want bytes.Buffer
	must.Succeed(t, export.JSON(&want, list))
	a := get(t, at+"/api/runs")
	must.Equal(t, want.String(), a.body)
	var got []map[string]any
	if err := json.Unmarshal([]byte(a.body), &got); err != nil || len(got) != 4 {
		t.Fatalf("%d runs, %v, want 4", len(got), err)
	}
	if _, finished := got[0]["finished"]; finished || got[0]["status"] != "running" || got[0]["machine"] != "lab-1" {
		t.Errorf("the run in progress is %v, want no finish, status running, machine lab-1", got[0])
	}
}

func TestAddressesWithOtherNamesOfARunRedirectToItsID(t *testing.T) {
	_, reader, _, _ := filled(t)
	_, at := site(t, reader)
	for path, want := range map[string]string{
		"/runs/20261121":    "/runs/20261121-093015-quick",
		"/runs/latest":      "/runs/20270101-000000-slow",
		"/runs/latest/live": "/runs/20270101-000000-slow/live",
		// The list begins with the newest run, and the older one is A.
		"/compare?run=20261202-093015-quick&run=20261121-093015-quick": "/compare?a=20261121-093015-quick&b=20261202-093015-quick",
		"/compare?run=20261121-093015-quick&run=20261202-093015-quick": "/compare?a=20261121-093015-quick&b=20261202-093015-quick",
	} {
		if a := get(t, at+path); a.status != http.StatusFound || a.header.Get("Location") != want {
			t.Errorf("%s leads to %q with status %d, want %q", path, a.header.Get("Location"), a.status, want)
		}
	}
}

func TestMistakesAreAnsweredWithTheRemedy(t *testing.T) {
	_, reader, _, _ := filled(t)
	_, at := site(t, reader)
	for path, want := range map[string]struct {
		status int
		text   string
	}{
		"/runs/2026-nothing":                          {404, "there is no run of this name; similar runs:"},
		"/runs/2026":                                  {404, "give more of the ID"},
		"/runs/nothing/live":                          {404, "there is no run of this name"},
		"/runs/nothing/events":                        {404, "there is no run of this name"},
		"/runs/20270101/events?after=x":               {400, "omit it"},
		"/runs/..%2f..%2f..%2fetc%2fpasswd":           {404, "there is no run of this name"},
		"/runs/%2e%2e%2f%2e%2e%2fetc%2fpasswd/live":   {404, "there is no run of this name"},
		"/static/..%2fserve.go":                       {404, "no page at this address"},
		"/static/site.css":                            {404, "no page at this address"},
		"/static/":                                    {404, "no page at this address"},
		"/runs/%00":                                   {404, "there is no run of this name"},
		"/nowhere":                                    {404, "no page at this address"},
		"/?page=0":                                    {404, "The list has 1 page"},
		"/?page=x":                                    {404, "The list has 1 page"},
		"/compare?run=20261121-093015-quick":          {400, "Select two runs"},
		"/compare?a=20261121&b=nothing":               {404, "there is no run of this name"},
		"/compare?a=20261121&b=20261121":              {400, "is named twice"},
		"/compare?a=20261121&b=20261202&metric=speed": {400, "there is no metric"},
		"/compare?a=20261121&b=" + strings.Repeat("20261202,", 30): {400, "at most 10 runs"},
		"/trend?suite=quik":                  {404, "It has runs of: slow, quick"},
		"/trend?suite=slow":                  {400, "none of its 1 run is complete"},
		"/trend?suite=quick&metric=speed":    {400, "there is no metric"},
		"/trend?suite=quick&scenario=brigde": {400, "did you mean"},
		"/trend?suite=slow&like=20261121":    {400, "is of suite quick"},
		"/trend?like=nothing":                {404, "there is no run of this name"},
		"/trend?suite=quick&last=9999":       {400, "1 to 200 runs"},
	} {
		a := get(t, at+path)
		a.expect(t, path, want.status)
		if text := unescape(a.body); !strings.Contains(text, want.text) {
			t.Errorf("%s: the answer lacks %q: %.400s", path, want.text, text)
		}
		if strings.Contains(a.body, "root:x:0") {
			t.Errorf("%s: the answer has a file of the machine", path)
		}
	}
	// Go's client cleans paths, so this one is sent as it is.
	if status := raw(t, at, "GET /static/../../../../etc/passwd HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"); !strings.Contains(status, " 301 ") && !strings.Contains(status, " 307 ") && !strings.Contains(status, " 404 ") {
		t.Errorf("a path with dots: %q, want a redirect or 404", status)
	}
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH"} {
		a := ask(t, method, at+"/runs/20261121-093015-quick")
		a.expect(t, method, http.StatusMethodNotAllowed, "only reads")
		if a.header.Get("Allow") != "GET, HEAD" {
			t.Errorf("%s: Allow is %q", method, a.header.Get("Allow"))
		}
	}
}

func unescape(text string) string { return html.UnescapeString(text) }

// raw sends a request as it is, and returns the first line of the answer.
func raw(t *testing.T, at, request string) string {
	t.Helper()
	u := must.Get(url.Parse(at))(t)
	c := must.Get(net.Dial("tcp", u.Host))(t)
	defer c.Close()
	must.Get(io.WriteString(c, request))(t)
	text := must.Get(io.ReadAll(c))(t)
	line, _, _ := strings.Cut(string(text), "\r\n")
	return line
}

// A text of the store or of the address must not become an element of a page.
func TestHostileTextsStayText(t *testing.T) {
	writer, reader := store(t)
	const evil = `"><script>hacked=1</script>`
	run, plan, samples := reporttest.Sample()
	run.ID, run.Suite, run.Title, run.Environment.Hostname, run.Status = "evil-"+evil, evil, evil, evil, sample.Running
	plan.Scenarios[0].ID, samples[0].Scenario = evil, evil
	plan.Comparisons, plan.Published = nil, nil
	samples[0].Failure = &sample.Failure{Kind: "x", Message: evil}
	put(t, writer, run, plan, samples[:1])
	_, at := site(t, reader)
	id := url.PathEscape(run.ID)
	for _, path := range []string{"/", "/runs/" + id, "/runs/" + id + "/live", "/runs/" + url.PathEscape(evil), "/compare?a=" + url.QueryEscape(evil), "/trend?suite=" + url.QueryEscape(evil), "/?suite=" + url.QueryEscape(evil)} {
		if a := get(t, at+path); strings.Contains(a.body, "<script>hacked") {
			t.Errorf("%s: the page has the text as a script", path)
		}
	}
	get(t, at+"/runs/"+id).expect(t, "a run with a strange ID", http.StatusOK)
}

// The list and the live view must not read what is large: the series of samples. Here the
// series cannot be read.
func TestAThousandRunsAreListedWithoutTheirSamples(t *testing.T) {
	must.Long(t)
	writer, reader := store(t)
	run, plan, samples := reporttest.Sample()
	for n := range 1000 {
		run := run
		run.ID, run.Started = fmt.Sprintf("run-%04d", n), run.Started.Add(time.Duration(n)*time.Minute)
		put(t, writer, run, plan, samples[:1])
	}
	change(t, writer.Path(), "UPDATE sample SET series_json = 'not JSON', hops_json = 'not JSON'")
	_, at := site(t, reader)
	a := get(t, at+"/")
	a.expect(t, "the first page", http.StatusOK, "runs 1 to 100 of 1000", "run-0999", "run-0900", `href="/?page=2"`)
	if strings.Contains(a.body, "run-0899") || strings.Contains(a.body, "newer runs") {
		t.Error("the first page has a run of the second, or a link to newer runs")
	}
	a = get(t, at+"/?page=10")
	a.expect(t, "the last page", http.StatusOK, "runs 901 to 1000 of 1000", "run-0099", "run-0000", `href="/?page=9"`)
	if strings.Contains(a.body, "older runs") {
		t.Error("the last page has a link to older runs")
	}
	get(t, at+"/api/runs").expect(t, "the JSON", http.StatusOK, "run-0000", "run-0999")
	get(t, at+"/runs/run-0500/live").expect(t, "a live view", http.StatusOK, "1 of 48 trials measured")
	get(t, at+"/runs/run-0500").expect(t, "the report", http.StatusInternalServerError, "damaged")
}

// change runs a statement of SQL on a store.
func change(t *testing.T, path, statement string) {
	t.Helper()
	db := must.Get(sql.Open("sqlite", path))(t)
	defer db.Close()
	must.Get(db.Exec(statement))(t)
}

// A page is made again only if its runs have changed.
func TestPagesAreKeptUntilTheirRunsChange(t *testing.T) {
	writer, reader, running, plan := filled(t)
	s, at := site(t, reader)
	paths := []string{"/runs/20261121-093015-quick", "/runs/" + running.ID, "/compare?a=20261121&b=20261202", "/trend?suite=quick"}
	for _, path := range paths {
		get(t, at+path).expect(t, path, http.StatusOK)
	}
	if n := s.kept.Len(); n != 4 {
		t.Fatalf("%d pages are kept, want 4", n)
	}
	for _, path := range paths {
		get(t, at+path).expect(t, path, http.StatusOK)
	}
	must.Equal(t, 4, s.kept.Len())
	_, _, samples := reporttest.Sample()
	must.Get(writer.AppendSample(running.ID, samples[5]))(t)
	run, _, samples := later(2, 0.5)
	put(t, writer, run, plan, samples)
	get(t, at+"/runs/"+running.ID).expect(t, "the run in progress", http.StatusOK)
	get(t, at+"/trend?suite=quick").expect(t, "the trend", http.StatusOK, "4 runs", run.ID)
	must.Equal(t, 6, s.kept.Len())
	for n := range mostKept + 10 {
		must.Get(keep(t.Context(), s, fmt.Sprint(n), func() ([]byte, error) { return nil, nil }))(t)
	}
	must.Equal(t, mostKept, s.kept.Len())
}

func TestATrendMarksTheChange(t *testing.T) {
	writer, reader := store(t)
	for n := range 12 {
		factor := 1.0
		if n >= 6 {
			factor = 0.8
		}
		run, plan, samples := later(n, factor)
		put(t, writer, run, plan, samples)
	}
	_, at := site(t, reader)
	a := get(t, at+"/trend?suite=quick&scenario=vxlan/stream")
	a.expect(t, "the trend", http.StatusOK, "12 runs", "◀ ×0.", `class="changed"`, "nothing that is recorded of the machine changed with it")
	must.Equal(t, 1, strings.Count(a.body, `class="changed"`))
	get(t, at+"/trend?suite=quick&scenario=vxlan/stream&last=4").expect(t, "the newest four", http.StatusOK, "4 runs")
}

func TestLinksToChangeAPageKeepItsChoices(t *testing.T) {
	_, reader, _, _ := filled(t)
	_, at := site(t, reader)
	for path, want := range map[string]string{
		"/compare?a=20261121&b=20261202&metric=throughput_bps&scenario=bridge&across=1": "/compare?a=20261121&across=1&b=20261202&change=1&metric=throughput_bps&scenario=bridge",
		"/trend?suite=quick&last=3&scenario=raw&across=1":                               "/trend?across=1&change=1&last=3&scenario=raw&suite=quick",
	} {
		if body := unescape(get(t, at+path).body); !strings.Contains(body, `href="`+want+`"`) {
			t.Errorf("%s has no link to %s", path, want)
		}
		get(t, at+want).expect(t, want, http.StatusOK, `name="across" value="1" checked`)
	}
}

// running starts a server as `windtunnel serve` does.
func running(t *testing.T, s *Site) (at string, end func() error) {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()
	t.Cleanup(cancel)
	return "http://" + l.Addr().String(), func() error { cancel(); return <-done }
}

// A run's name, note, headline, testbed and flags are in the list, and the forms offer it by them.
func TestRunsAreNamedAndSeparatedByTheirForm(t *testing.T) {
	writer, reader, _, _ := filled(t)
	run, plan, samples := later(5, 0.5)
	run.Name, run.Note, run.Options.Command = "fix/mtu", "after the update", "run quick --short"
	put(t, writer, run, plan, samples)
	must.Succeed(t, writer.SetHeadline(run.ID, "The bridge carries 3.6 % less than raw."))
	_, at := site(t, reader)
	for path, want := range map[string][]string{
		"/":                                   {"<b>fix/mtu</b>", "after the update", "The bridge carries 3.6 % less than raw.", "<small>--short</small>", "What a virtual network costs, in three minutes"},
		"/runs/" + run.ID:                     {"fix/mtu", "after the update", `href="/trend?like=` + run.ID + `"`},
		"/compare":                            {">" + run.ID + " · fix/mtu · --short</option>"},
		"/compare?a=fix/mtu@latest":           {`<option value="` + run.ID + `" selected>`},
		"/trend":                              {`<option value="` + run.ID + `">quick, --short</option>`},
		"/trend?suite=quick":                  {"3 runs", "Left out: 1 run with another testbed or other flags", "--short (1, such as " + run.ID + ")"},
		"/trend?like=fix/mtu@latest":          {"Trend of suite quick, --short", "fix/mtu"},
		"/trend?like=" + run.ID + "&change=1": {`<option value="` + run.ID + `" selected>quick, --short</option>`},
		"/api/runs":                           {`"name": "fix/mtu"`, `"flags": "--short"`, `"headline": "The bridge`},
	} {
		get(t, at+path).expect(t, path, http.StatusOK, want...)
	}
}
