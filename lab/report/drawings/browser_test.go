package drawings

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"

	"windtunnel/internal/must"
	"windtunnel/lab/report/browsertest"
	"windtunnel/lab/report/export"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/reporttest"
	"windtunnel/lab/report/tables"
)

// browse writes the report to a file and opens it in chromium at this width.
func browse(t *testing.T, r *model.Report, width int64, first ...chromedp.Action[chromedp.Void]) *browsertest.Tab {
	t.Helper()
	return browsertest.OpenPage(t, written(t, r), width, first...)
}

// drawn waits until the page's charts are there and returns, by chart, how many
// data its series have.
func drawn(t *testing.T, p *browsertest.Tab) map[string][]int {
	t.Helper()
	return browsertest.Eval[map[string][]int](t, p, `Object.fromEntries([...document.querySelectorAll('.chart')].map(c => {
		const chart = echarts.getInstanceByDom(c);
		return [c.id, chart ? chart.getOption().series.map(s => s.data.length) : []];
	}))`)
}

func TestPageInABrowser(t *testing.T) {
	t.Parallel()
	r := reporttest.Quick()
	p := browse(t, r, 1280)

	t.Run("draws every chart from all of the run's figures", func(t *testing.T) {
		want := map[string][]int{
			"c-streams-main": {4, 24}, "c-streams-cpu": {7, 42}, "c-exchange-main": {4, 23}, "c-exchange-cpu": {7, 40},
			"c-exchange-latency": {4, 20}, "c-ratios": {6, 16}, "c-series": {30, 30, 30},
			"c-trials": {1, 6, 0, 0, 0},
		}
		must.Equal(t, want, drawn(t, p))
		for id := range want {
			if n := browsertest.Eval[int](t, p, `document.querySelectorAll('#`+id+` svg path, #`+id+` svg text').length`); n < 10 {
				t.Errorf("%s shows only %d shapes", id, n)
			}
		}
	})

	t.Run("shows the report's figures in its tables", func(t *testing.T) {
		got := browsertest.Eval[map[string]float64](t, p, `Object.fromEntries([...document.querySelectorAll('td[data-value]')].map(
			td => [td.parentElement.dataset.scenario + ' ' + td.cellIndex, Number(td.dataset.value)]))`)
		want := make(map[string]float64)
		for _, f := range tables.Of(r) {
			for k, c := range f.Columns {
				for i, cell := range c.Cells {
					if cell.Has {
						want[fmt.Sprint(f.Rows[i].ID, " ", k+1)] = cell.Value
					}
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" || len(want) < 60 {
			t.Errorf("%d figures: %s", len(want), diff)
		}
		must.Equal(t, r.Scenarios[0].Throughput.Median, want["raw/stream 1"])
	})

	t.Run("sorts a table by a column", func(t *testing.T) {
		order := `[...document.querySelectorAll('[aria-label^="stream:"] tbody tr')].map(r => r.dataset.scenario).join(' ')`
		p.Do(t, chromedp.Click(chromedp.CSS(`[aria-label^="stream:"] thead th:nth-child(2) button`)))
		must.Equal(t, "bridge-colocated/stream raw/stream bridge/stream vxlan/stream macvlan/stream", browsertest.Eval[string](t, p, order))
		p.Do(t, chromedp.Click(chromedp.CSS(`[aria-label^="stream:"] thead th:nth-child(2) button`)))
		must.Equal(t, "vxlan/stream bridge/stream raw/stream bridge-colocated/stream macvlan/stream", browsertest.Eval[string](t, p, order))
	})

	t.Run("shows the chosen trial and the chosen path of the packets", func(t *testing.T) {
		before := browsertest.Eval[string](t, p, `JSON.stringify(echarts.getInstanceByDom(document.getElementById('c-series')).getOption().series[0].data)`)
		p.Do(t, choose("series-scenario", 3))
		if after := browsertest.Eval[string](t, p, `JSON.stringify(echarts.getInstanceByDom(document.getElementById('c-series')).getOption().series[0].data)`); after == before {
			t.Error("another scenario draws the same series")
		}
		p.Do(t, choose("path-scenario", 0))
		must.Equal(t, "raw/stream", browsertest.Eval[string](t, p, `[...document.querySelectorAll('.topology')].filter(t => t.offsetHeight > 0).map(t => t.dataset.scenario).join(' ')`))
	})

	// sides returns the place of the receiver's node relative to the sender's node.
	// misplaced lists the devices that overlap another device or lie outside their part.
	const sides = `(() => {
		const box = s => document.querySelector('.topology:not([hidden]) ' + s).getBoundingClientRect();
		return box('.far').left >= box('.near').right ? 'beside' : box('.far').top >= box('.near').bottom ? 'below' : 'over';
	})()`
	const misplaced = `[...document.querySelectorAll('.topology:not([hidden]) .device')].filter((e, i, all) => {
		const a = e.getBoundingClientRect(), p = e.closest('.path > div').getBoundingClientRect();
		return a.left < p.left || a.right > p.right || a.top < p.top || a.bottom > p.bottom || e.scrollWidth > e.clientWidth ||
			all.slice(0, i).some(o => { const b = o.getBoundingClientRect(); return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom; });
	}).map(e => e.textContent)`
	t.Run("draws the path of the packets as a U", func(t *testing.T) {
		p.Do(t, chromedp.EmulateViewport(1200, 900), choose("path-scenario", 6))
		must.Equal(t, "beside", browsertest.Eval[string](t, p, sides))
		if got := browsertest.Eval[[]string](t, p, misplaced); len(got) > 0 {
			t.Errorf("these devices overlap another device or lie outside their part: %q", got)
		}
		must.Equal(t, 1, browsertest.Eval[int](t, p, `document.querySelectorAll('.topology:not([hidden]) .path .dropped').length`))
	})

	t.Run("gives the figures as a file", func(t *testing.T) {
		got := browsertest.Run(t, p, chromedp.Evaluate[string](`new Promise(done => {
			const make = URL.createObjectURL;
			URL.createObjectURL = blob => { blob.text().then(done); document.getElementById('download').addEventListener('click', e => e.preventDefault()); return make(blob); };
			document.getElementById('download').click();
		})`, chromedp.EvalAwaitPromise))
		var want bytes.Buffer
		must.Succeed(t, export.WriteJSON(&want, r))
		if got != want.String() {
			t.Errorf("the file of %d bytes is not the report's JSON of %d", len(got), want.Len())
		}
	})

	t.Run("follows the reader's light and dark", func(t *testing.T) {
		colours := `getComputedStyle(document.body).backgroundColor + ' ' + document.querySelector('#c-streams-main svg').innerHTML.includes('#e6ebf1')`
		must.Equal(t, "rgb(255, 255, 255) false", browsertest.Eval[string](t, p, colours))
		p.Do(t, browsertest.Scheme("dark"))
		p.Until(t, colours, "rgb(18, 23, 30) true")
	})

	t.Run("shows every column at 1280 pixels", func(t *testing.T) {
		p.Do(t, chromedp.EmulateViewport(1280, 900))
		cut := browsertest.Eval[[]string](t, p, `[...document.querySelectorAll('.wide')].filter(e => e.scrollWidth > e.parentElement.clientWidth).map(e => e.parentElement.ariaLabel)`)
		if len(cut) > 0 {
			t.Errorf("these tables are wider than the page: %v", cut)
		}
	})

	t.Run("prints light, whole, with its charts", func(t *testing.T) {
		printed(t, browsertest.Run(t, p, chromedp.PrintToPDF(chromedp.PDFPaper(chromedp.PaperA4), chromedp.PDFPrintBackground())))
		p.Until(t, `getComputedStyle(document.body).backgroundColor`, "rgb(18, 23, 30)")
		p.Do(t, browsertest.Scheme("light"))
	})

	t.Run("fits 400 pixels", func(t *testing.T) {
		p.Do(t, chromedp.EmulateViewport(400, 900))
		p.Until(t, `String(document.querySelector('#c-streams-main svg').clientWidth <= 400)`, "true")
		if w := browsertest.Eval[int](t, p, `document.documentElement.scrollWidth`); w > 400 {
			t.Errorf("the page is %d pixels wide", w)
		}
		wide := browsertest.Eval[[]string](t, p, `[...document.querySelectorAll('main *')].filter(e => !e.closest('.scroll, pre, details') && e.getBoundingClientRect().right > 401).map(e => e.tagName + '.' + e.getAttribute('class'))`)
		if len(wide) > 0 {
			t.Errorf("these stand out of the page: %v", wide)
		}
		must.Equal(t, "below", browsertest.Eval[string](t, p, sides))
	})

	problems, requests := p.Seen()
	if len(problems) > 0 || len(requests) > 0 {
		t.Errorf("the page said %q and asked for %q", problems, requests)
	}
}

func TestHostilePageInABrowserRunsNothing(t *testing.T) {
	t.Parallel()
	p := browse(t, hostile(t), 1000)
	p.Until(t, flameReady, "yes")
	p.Do(t, choose("flame-against", 1))
	p.Do(t, choose("trials-scenario", 0))
	for id, sizes := range drawn(t, p) {
		if len(sizes) == 0 {
			t.Errorf("%s is not drawn", id)
		}
	}
	if browsertest.Eval[bool](t, p, `'hacked' in window`) {
		t.Error("a name ran as a script")
	}
	// The tooltip of every bar is HTML that the page makes from names.
	shown := browsertest.Eval[int](t, p, `[...document.querySelectorAll('.chart')].map(c => {
		const chart = echarts.getInstanceByDom(c);
		chart.getOption().series.forEach((s, i) => chart.dispatchAction({ type: 'showTip', seriesIndex: i, dataIndex: 0 }));
		return chart;
	}).length`)
	if shown < 5 {
		t.Errorf("only %d charts", shown)
	}
	if browsertest.Eval[bool](t, p, `'hacked' in window || document.querySelector('img, main script, .chart script') !== null`) {
		t.Error("a name became an element")
	}
	problems, requests := p.Seen()
	if len(problems) > 0 || len(requests) > 0 {
		t.Errorf("the page said %q and asked for %q", problems, requests)
	}
}

// choose picks an option as a person would.
func choose(id string, index int) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Run(ctx, chromedp.Evaluate[bool](fmt.Sprintf(
			`(s => { s.selectedIndex = %d; s.dispatchEvent(new Event('change')); return true; })(document.getElementById(%q))`, index, id)))
		return err
	})
}

// printed checks the paper: the charts' writing is on it, and no controls.
func printed(t *testing.T, pdf []byte) {
	t.Helper()
	if !bytes.HasPrefix(pdf, []byte("%PDF-")) || len(pdf) < 50_000 {
		t.Fatalf("%d bytes are no PDF of the page", len(pdf))
	}
	if _, err := exec.LookPath("pdftotext"); err != nil {
		t.Skip("no pdftotext to read the paper with: apt-get install poppler-utils")
	}
	file := filepath.Join(t.TempDir(), "report.pdf")
	must.Succeed(t, os.WriteFile(file, pdf, 0o644))
	out := must.Get(exec.Command("pdftotext", "-layout", file, "-").Output())(t)
	text := string(out)
	// 8.63 Gbit/s stands in the table and on its bar.
	if n := strings.Count(text, "8.63"); n < 2 {
		t.Errorf("8.63 is printed %d times, want on the bar and in the table", n)
	}
	for _, want := range []string{"bridge-colocated / raw", "seconds", "port-a", "2 dropped", "Method"} {
		if !strings.Contains(text, want) {
			t.Errorf("the paper lacks %q", want)
		}
	}
	for _, control := range []string{"Download the figures", "Counters as a table", "Skip to the figures"} {
		if strings.Contains(text, control) {
			t.Errorf("the paper has %q, which does nothing on paper", control)
		}
	}
}
