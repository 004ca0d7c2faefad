package html

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"windtunnel/internal/must"
	"windtunnel/lab/report/browsertest"
	"windtunnel/lab/report/compare"
	"windtunnel/lab/report/document"
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/report/reporttest"
	"windtunnel/lab/sample"
)

// runs returns runs of which those from change on have 0.8 of the throughput.
func runs(n, change int) (list []compare.Side) {
	for i := range n {
		run, plan, samples := reporttest.Sample()
		run.ID, run.Seed = fmt.Sprintf("run-%02d", i), uint64(i)
		run.Started = run.Started.AddDate(0, 0, i)
		for k := range samples {
			if v, ok := samples[k].Metrics[sample.Throughput]; ok {
				v *= 1 + 0.004*float64(i%3)
				if i >= change {
					v *= 0.8
				}
				samples[k].Metrics[sample.Throughput] = v
			}
		}
		if i >= change {
			run.Environment.Kernel = "6.18.9"
		}
		list = append(list, compare.Side{Run: run, Plan: plan, Samples: samples})
	}
	return list
}

func slower(t testing.TB) *compare.Comparison {
	t.Helper()
	all := runs(12, 6)
	return must.Get(compare.Runs(all[3:6], all[6:9], compare.Options{History: all}))(t)
}

func followed(t testing.TB) *compare.Trend {
	t.Helper()
	return must.Get(compare.NewTrend("quick", runs(12, 6), compare.TrendOptions{}))(t)
}

// contents lists the titles and the texts of the tables of a document.
func contents(d document.Document) (list []string) {
	for _, section := range d.Sections {
		list = append(list, section.Title)
		for _, table := range section.Tables {
			for _, row := range table.Rows {
				list = append(list, row.Notes...)
				for i, cell := range row.Cells {
					if i > 0 { // the first may be a link
						list = append(list, cell.Text, cell.Range)
					}
				}
			}
		}
	}
	return list
}

func linked() Site {
	return Site{Links: []document.Link{{Text: "Runs", URL: "/"}}, Run: func(id string) string { return "/runs/" + id }}
}

func TestAComparisonSaysEverythingWithoutJavaScript(t *testing.T) {
	c := slower(t)
	var b bytes.Buffer
	must.Succeed(t, linked().Write(&b, c.Document()))
	text := browsertest.Readable(b.Bytes())
	want := append([]string{`<a href="/">Runs</a>`, `<a href="/runs/run-03">run-03</a>`, `<a href="/runs/run-08">run-08</a>`, "kernel", "6.18.9", `class="verdict worse"`}, c.Notes...)
	for _, w := range append(want, contents(c.Document())...) {
		if !strings.Contains(text, w) {
			t.Errorf("the page lacks %q", w)
		}
	}
	b.Reset()
	must.Succeed(t, (Site{}).Write(&b, c.Document()))
	if text := browsertest.Readable(b.Bytes()); strings.Contains(text, "<a ") || !strings.Contains(text, "run-03") {
		t.Error("a page that stands alone has links, or lacks the runs")
	}
}

func TestATrendSaysEverythingWithoutJavaScript(t *testing.T) {
	trend := followed(t)
	var b bytes.Buffer
	must.Succeed(t, linked().Write(&b, trend.Document()))
	text := browsertest.Readable(b.Bytes())
	want := append([]string{"12 runs", "Trend of suite quick", "kernel: 6.18.3 → 6.18.9"}, trend.Notes...)
	changes := 0
	for i := range trend.Series {
		for _, p := range trend.Series[i].Points {
			want = append(want, `<a href="/runs/`+p.Run+`">`, p.Started.Format(time.DateOnly))
			if p.Change != nil {
				changes++
				want = append(want, "◀ ×"+quantity.Scale{By: 1}.Print(p.Change.Ratio))
			}
		}
	}
	for _, w := range append(want, contents(trend.Document())...) {
		if !strings.Contains(text, w) {
			t.Errorf("the page lacks %q", w)
		}
	}
	if changes < 3 || strings.Count(text, `class="changed"`) != changes {
		t.Errorf("%d changes are marked, and the trend has %d, want 3 or more", strings.Count(text, `class="changed"`), changes)
	}
}

func TestATrendOfOneRunSaysThatItNeedsMore(t *testing.T) {
	trend := must.Get(compare.NewTrend("quick", runs(1, 6), compare.TrendOptions{}))(t)
	var b bytes.Buffer
	must.Succeed(t, (Site{}).Write(&b, trend.Document()))
	if !strings.Contains(browsertest.Readable(b.Bytes()), "A trend needs two or more") {
		t.Error("the page does not say that a trend needs two runs")
	}
}

func TestADrawingWithoutATemplateIsAnError(t *testing.T) {
	var b bytes.Buffer
	err := Site{}.Write(&b, document.Document{Title: "t", Sections: []document.Section{{Title: "Every trial", Drawing: "no-such"}}})
	if err == nil || !strings.Contains(err.Error(), `draw the section "Every trial": there is no drawing "no-such"`) || b.Len() > 0 {
		t.Errorf("the error is %v after %d bytes, want one that names the section and its drawing, and no page", err, b.Len())
	}
}

func TestComparisonAndTrendInABrowser(t *testing.T) {
	must.Long(t)
	t.Parallel()
	var comparison, trend bytes.Buffer
	must.Succeed(t, linked().Write(&comparison, slower(t).Document()))
	must.Succeed(t, linked().Write(&trend, followed(t).Document()))
	for name, c := range map[string]struct {
		page   []byte
		charts int
	}{"comparison": {comparison.Bytes(), 1}, "trend": {trend.Bytes(), 8}} {
		t.Run(name, func(t *testing.T) {
			p := browsertest.OpenPage(t, c.page, 1280)
			for _, width := range []int64{1280, 400} {
				for name, ground := range map[string]string{"light": "rgb(255, 255, 255)", "dark": "rgb(18, 23, 30)"} {
					p.Do(t, chromedp.EmulateViewport(width, 900), browsertest.Scheme(name))
					p.Until(t, `getComputedStyle(document.body).backgroundColor`, ground)
					p.Until(t, `String([...document.querySelectorAll('.chart svg')].every(e => e.clientWidth <= innerWidth))`, "true")
					if over := browsertest.Eval[int](t, p, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
						t.Errorf("at %d pixels, %s, the page scrolls sideways by %d", width, name, over)
					}
				}
			}
			must.Equal(t, c.charts, browsertest.Eval[int](t, p, `[...document.querySelectorAll('.chart')].filter(c => c.querySelectorAll('svg path, svg text').length > 10).length`))
			// The tooltip of every datum is HTML that the page makes from names.
			browsertest.Eval[int](t, p, `[...document.querySelectorAll('.chart')].map(c => {
				const chart = echarts.getInstanceByDom(c);
				chart.getOption().series.forEach((s, i) => chart.dispatchAction({ type: 'showTip', seriesIndex: i, dataIndex: 0 }));
				return c;
			}).length`)
			if problems, requests := p.Seen(); len(problems) > 0 || len(requests) > 0 {
				t.Errorf("the page said %q and asked for %q", problems, requests)
			}
		})
	}
}

func TestLibraryKeepsItsLicences(t *testing.T) {
	page := echarts
	for _, notice := range []string{"Apache ECharts 6.1.0", "Apache License, Version 2.0", "The Apache Software Foundation", "BSD 3-Clause License", "Baidu Inc."} {
		if !strings.Contains(page, notice) {
			t.Errorf("the page carries the library without %q", notice)
		}
	}
	if len(echarts) > 1_100_000 {
		t.Errorf("the library has %d bytes, more than 1.1 MB", len(echarts))
	}
}

func TestWriteReportsAFailingWriter(t *testing.T) {
	broken := errors.New("disk full")
	err := Write(failing{broken}, document.Document{Title: "Three systems"})
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), `"Three systems"`) {
		t.Errorf("the error is %v, want disk full with the title", err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }
