package serve

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"windtunnel/internal/must"
	"windtunnel/lab/report/browsertest"
	"windtunnel/lab/report/reporttest"
	"windtunnel/lab/sample"
)

// wide lists the elements that are wider than the window.
const wide = `[...document.querySelectorAll('body *')].filter(e => !e.closest('.scroll, pre, details, .unseen, .skip, option, svg') && e.getBoundingClientRect().right > innerWidth + 1).map(e => e.tagName + '#' + e.id + '.' + e.className)`

// fine fails if the page is wider than the window, or has another background colour than ground.
func fine(t *testing.T, p *browsertest.Tab, what, ground string) {
	t.Helper()
	if over := browsertest.Eval[int](t, p, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
		t.Errorf("%s scrolls sideways by %d pixels: %q", what, over, browsertest.Eval[[]string](t, p, wide))
	}
	p.Until(t, `getComputedStyle(document.body).backgroundColor`, ground)
}

func TestEveryPageInABrowser(t *testing.T) {
	must.Long(t)
	t.Parallel()
	writer, reader, running, _ := filled(t)
	for n := range 9 {
		factor := 1.0
		if n >= 5 {
			factor = 0.8
		}
		run, plan, samples := later(2+n, factor)
		put(t, writer, run, plan, samples)
	}
	// A list with long names fits, too.
	named, plan, samples := later(12, 1)
	named.ID, named.Suite, named.Environment.Hostname = "20261213-093015-contrail-windows", "contrail-windows", "compute-node-17.lab.example.net"
	named.Name, named.Note = "feature/vrouter-direct-checksums", "after the update of the kernel to 6.18.9 on both hosts"
	named.Options.Command = "run contrail-windows --scenario bridge/stream,vxlan/stream --short"
	put(t, writer, named, plan, samples[:2])
	must.Succeed(t, writer.SetHeadline(named.ID, strings.Repeat("The bridge carries 3.6 % less than raw [2.4, 4.1], completes 15.0 % fewer transactions. ", 3)))
	_, at := site(t, reader)
	paths := []string{
		"/", "/?suite=slow", "/runs/20261121-093015-quick", "/runs/" + running.ID, "/runs/" + running.ID + "/live", "/runs/20261121-093015-quick/live",
		"/compare", "/compare?a=20261121&b=20261211", "/trend", "/trend?suite=quick", "/trend?suite=quick&change=1",
	}
	p := browsertest.Open(t, at+"/", 1280)
	for _, width := range []int64{1280, 400} {
		for scheme, ground := range map[string]string{"light": "rgb(255, 255, 255)", "dark": "rgb(18, 23, 30)"} {
			p.Do(t, chromedp.EmulateViewport(width, 900), browsertest.Scheme(scheme))
			for _, path := range paths {
				p.Do(t, chromedp.Navigate(at+path))
				fine(t, p, fmt.Sprintf("%s at %d pixels, %s,", path, width, scheme), ground)
			}
		}
	}
	p.Do(t, chromedp.EmulateViewport(1280, 900), chromedp.Navigate(at+"/"))
	if cut := browsertest.Eval[int](t, p, `(e => e.scrollWidth - e.parentElement.clientWidth)(document.querySelector('.runs'))`); cut > 0 {
		t.Errorf("the list of runs is %d pixels wider than its place at 1280 pixels", cut)
	}
	// The chart of a comparison, and one for each scenario of a trend.
	for path, charts := range map[string]int{"/compare?a=20261121&b=20261211": 1, "/trend?suite=quick": 8} {
		p.Do(t, chromedp.Navigate(at+path))
		if got := browsertest.Eval[int](t, p, `[...document.querySelectorAll('.chart')].filter(c => c.querySelectorAll('svg path, svg text').length > 10).length`); got != charts {
			t.Errorf("%s: %d charts are drawn, want %d", path, got, charts)
		}
	}
	problems, requests := p.Seen()
	if len(problems) > 0 {
		t.Errorf("the pages said %q", problems)
	}
	for _, url := range requests {
		if !strings.HasPrefix(url, at+"/") && !strings.HasPrefix(url, "data:") {
			t.Errorf("a page asked for %s, which is another host", url)
		}
	}
}

func TestErrorPagesFitANarrowWindow(t *testing.T) {
	must.Long(t)
	t.Parallel()
	_, reader, _, _ := filled(t)
	_, at := site(t, reader)
	p := browsertest.Open(t, at+"/", 400)
	for _, path := range []string{"/nowhere", "/runs/" + strings.Repeat("x", 200), "/compare?run=x", "/trend?suite=" + strings.Repeat("y", 200)} {
		p.Do(t, chromedp.Navigate(at+path))
		fine(t, p, path, "rgb(255, 255, 255)")
		if text := browsertest.Eval[string](t, p, `document.querySelector('.problem').textContent`); len(text) < 20 {
			t.Errorf("%.60s: the page says only %q", path, text)
		}
	}
}

func TestSelectingTwoRunsOpensTheirComparison(t *testing.T) {
	must.Long(t)
	t.Parallel()
	_, reader, _, _ := filled(t)
	_, at := site(t, reader)
	p := browsertest.Open(t, at+"/", 1280)
	p.Do(t,
		chromedp.Click(chromedp.CSS(`input[value="20261202-093015-quick"]`)),
		chromedp.Click(chromedp.CSS(`input[value="20261121-093015-quick"]`)),
		chromedp.Click(chromedp.CSS(`button[type=submit]`)))
	p.Until(t, `location.pathname + location.search`, "/compare?a=20261121-093015-quick&b=20261202-093015-quick")
	p.Until(t, `document.querySelector('h1')?.textContent || ''`, "Comparison of suite quick")
	if problems, _ := p.Seen(); len(problems) > 0 {
		t.Errorf("the pages said %q", problems)
	}
}

func TestALiveViewInABrowserGrowsAndEnds(t *testing.T) {
	must.Long(t)
	t.Parallel()
	writer, reader, running, _ := filled(t)
	_, at := site(t, reader)
	_, _, samples := reporttest.Sample()
	p := browsertest.Open(t, at+"/runs/"+running.ID+"/live", 1280)
	p.Until(t, `document.getElementById('note').textContent`, "New trials appear here.")
	p.Until(t, `String(document.querySelectorAll('#lines li').length)`, "3")
	for _, s := range samples[3:8] {
		must.Get(writer.AppendSample(running.ID, s))(t)
	}
	p.Until(t, `document.getElementById('count').textContent`, "8 of 48 trials measured")
	p.Until(t, `String(document.querySelectorAll('#lines li').length)`, "8")
	p.Until(t, `String(document.getElementById('bar').value)`, "8")
	must.Equal(t, samples[7].Scenario, browsertest.Eval[string](t, p, `document.querySelector('#lines li b').textContent`))
	must.Equal(t, 9, browsertest.Eval[int](t, p, `document.querySelectorAll('#rows tr').length`))
	running.Status, running.Finished = sample.Complete, running.Started.Add(time.Hour)
	must.Succeed(t, writer.UpdateRun(running))
	p.Until(t, `document.getElementById('note').textContent`, "The run has ended. Its report has all figures.")
	p.Until(t, `document.querySelector('#note a').getAttribute('href')`, "/runs/"+running.ID)
	if problems, _ := p.Seen(); len(problems) > 0 {
		t.Errorf("the page said %q", problems)
	}
}

func TestABrowserLogsInWithTheToken(t *testing.T) {
	t.Parallel()
	_, reader, _, _ := filled(t)
	_, at := site(t, reader, func(o *Options) { o.Token = secret })
	p := browsertest.Open(t, at+"/?token="+secret, 1280)
	p.Until(t, `location.pathname + location.search + ' ' + document.querySelector('h1')?.textContent`, "/ Runs")
	p.Do(t, chromedp.Navigate(at+"/trend?suite=quick"))
	p.Until(t, `document.querySelector('h1')?.textContent || ''`, "Trend of suite quick")
	must.Equal(t, "", browsertest.Eval[string](t, p, `document.cookie`))
	if problems, _ := p.Seen(); len(problems) > 0 {
		t.Errorf("the pages said %q", problems)
	}
}
