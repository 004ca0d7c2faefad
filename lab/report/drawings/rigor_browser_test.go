package drawings

import (
	"context"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"windtunnel/internal/must"
	"windtunnel/lab/report/browsertest"
	"windtunnel/lab/report/rejected"
	"windtunnel/lab/sample"
)

// flameReady is yes once the flame graphs are unpacked and drawn.
const flameReady = `document.getElementById('flame').dataset.ready || ''`

// tipped is the text of a chart's tooltip over a datum.
func tipped(t *testing.T, p *browsertest.Tab, chart, series string, index int) string {
	t.Helper()
	return browsertest.Eval[string](t, p, `(place => {
		const chart = echarts.getInstanceByDom(place), all = chart.getOption().series;
		chart.dispatchAction({ type: 'showTip', seriesIndex: all.findIndex(s => s.name === '`+series+`'), dataIndex: `+string(rune('0'+index))+` });
		return [...place.children].slice(1).map(e => e.innerText).join(' ');
	})(document.getElementById('`+chart+`'))`)
}

func write(id, text string) chromedp.Action[bool] {
	return chromedp.Evaluate[bool](`(s => { s.value = '` + text + `'; s.dispatchEvent(new Event('input')); return true; })(document.getElementById('` + id + `'))`)
}

func press(keys string) chromedp.Action[bool] {
	return chromedp.Evaluate[bool](`'` + keys + `'.split(' ').every(key => { const e = document.getElementById('flame'); e.focus(); e.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true })); return true; })`)
}

func TestRigorousPageInABrowser(t *testing.T) {
	must.Long(t)
	t.Parallel()
	r := rigorous(t)
	p := browse(t, r, 1280)
	p.Until(t, flameReady, "yes")
	text := func(selector string) string {
		t.Helper()
		return browsertest.Eval[string](t, p, `[...document.querySelectorAll('`+selector+`')].filter(e => e.offsetHeight > 0).map(e => e.innerText).join('\n')`)
	}
	shows := func(what, got string, all ...string) {
		t.Helper()
		for _, want := range all {
			if !strings.Contains(got, want) {
				t.Errorf("%s is %q, it lacks %q", what, got, want)
			}
		}
	}

	t.Run("says above every detailed table what a reader asks first", func(t *testing.T) {
		shows("a card", text(".card"), "≠ differs", "? suggested", "detectable: 3.1 %", "too few trials to tell", "no difference")
		if at := browsertest.Eval[bool](t, p, `[...document.querySelectorAll('table:not(.systems)')].filter(t => t.offsetHeight > 0).every(t => t.getBoundingClientRect().top > document.querySelector('.cards').getBoundingClientRect().bottom)`); !at {
			t.Error("a table stands above the cards")
		}
		shows("the heading of a card", text(".card h3"), "bridge against raw", "vxlan against raw")
		if grey := browsertest.Eval[string](t, p, `[...document.querySelectorAll('.verdict.undecided, .verdict.holds')].map(e => getComputedStyle(e).color === getComputedStyle(document.querySelector('.hint')).color).join()`); !strings.Contains(grey, "true") || !strings.HasPrefix(grey, "false") {
			t.Errorf("undecided hypotheses, and only these, must be grey: %s", grey)
		}
	})

	t.Run("draws a ladder step by step for the chosen metric", func(t *testing.T) {
		shows("the waterfall", text("#c-ladder-0"), "encapsulation in VXLAN", "11.0 Gbit/s", "−2.0", "≠ differs", "not known")
		p.Do(t, choose("ladder-0-metric", 2))
		shows("the waterfall of another metric", text("#c-ladder-0"), "0.410 ns/byte", "+0.030", "? suggested", "+0.080")
		shows("the tooltip of a step", tipped(t, p, "c-ladder-0", "steps", 2), "encapsulation in VXLAN adds", "+0.080 ns/byte", "differs", "p 0.004", "15 % of the whole")
		// Significance can be seen without colour: a doubtful step is hatched.
		lines := `document.querySelectorAll('#c-ladder-0 svg path').length`
		doubtful := browsertest.Eval[int](t, p, lines)
		p.Do(t, choose("ladder-0-metric", 0))
		if sure := browsertest.Eval[int](t, p, lines); doubtful <= sure {
			t.Errorf("%d strokes with a doubtful step and %d without", doubtful, sure)
		}
	})

	t.Run("crosses out trials that failed a gate and says why", func(t *testing.T) {
		must.Equal(t, "vxlan/stream", browsertest.Eval[string](t, p, `document.getElementById('trials-scenario').selectedOptions[0].text`))
		if got := drawn(t, p)["c-trials"]; len(got) != 5 || got[1] != 5 || got[2] != 2 || got[4] != 1 {
			t.Errorf("the chart has %v, want the median, 5 trials that count, 2 crossed out and 1 with the profiler", got)
		}
		shows("the tooltip of a cross", tipped(t, p, "c-trials", "marked, does not count", 1), "block 2", "foreign-cpu", gateMessage)
		shows("the line below", text("#trials-shown"), "5 trials count, 2 marked, 1 with the profiler")
		bridge := browsertest.Eval[int](t, p, `[...document.getElementById('trials-scenario').options].findIndex(o => o.text === 'bridge/stream')`)
		p.Do(t, choose("trials-scenario", bridge))
		shows("the list of failed trials", text("#trials-failed"), "block 4 failed: tool-hung")
	})

	t.Run("judges hypotheses in words", func(t *testing.T) {
		shows("the table", text("[aria-label=Hypotheses]"), "✓ holds", "✗ refuted", "? undecided", "≥ 0.7", "the figures of “VXLAN takes")
	})

	t.Run("unfolds which trials do not count", func(t *testing.T) {
		shows("the line", text("#h-validity ~ ul"), rejected.Line(r.Validity))
		p.Do(t, chromedp.Click(chromedp.CSS(`#h-validity ~ details summary`)))
		shows("the list", text("#h-validity ~ details"), "block 5", string(sample.ForeignCPU), gateMessage, "tool-hung")
	})

	flameGraph(t, p, text, shows)

	t.Run("fits 400 pixels", func(t *testing.T) {
		p.Do(t, chromedp.EmulateViewport(400, 900))
		p.Until(t, `String(document.querySelector('#c-ladder-0 svg').clientWidth <= 400)`, "true")
		wide := browsertest.Eval[[]string](t, p, `[...document.querySelectorAll('main *')].filter(e => !e.closest('.scroll, pre, details, #flame') && e.getBoundingClientRect().right > 401).map(e => e.tagName + '#' + e.id + '.' + e.getAttribute('class'))`)
		if w := browsertest.Eval[int](t, p, `document.documentElement.scrollWidth`); w > 400 || len(wide) > 0 {
			t.Errorf("the page is %d pixels wide; these stand out: %v", w, wide)
		}
	})

	problems, requests := p.Seen()
	if len(problems) > 0 || len(requests) > 0 {
		t.Errorf("the page said %q and asked for %q", problems, requests)
	}
}

func flameGraph(t *testing.T, p *browsertest.Tab, text func(string) string, shows func(string, string, ...string)) {
	boxes := `document.querySelectorAll('#flame .box').length`
	named := func(name string) string {
		return `[...document.querySelectorAll('#flame .box')].find(b => b.getAttribute('aria-label').startsWith('` + name + ` '))`
	}
	t.Run("zooms a flame graph by click and key, and back", func(t *testing.T) {
		all := browsertest.Eval[int](t, p, boxes)
		if all < 20 {
			t.Fatalf("the flame graph has %d boxes", all)
		}
		shows("what stands below", text("#flame-at"), "100.0 % of the side", "0.660 cores", "1,980 samples")
		browsertest.Eval[bool](t, p, named("copy_from_iter")+`.click() || true`)
		if got := browsertest.Eval[int](t, p, boxes); got >= all {
			t.Errorf("zoomed in it has %d boxes of %d", got, all)
		}
		must.Equal(t, "100%", browsertest.Eval[string](t, p, named("copy_from_iter")+`.style.width`))
		shows("what stands below", text("#flame-at"), "copy_from_iter (kernel)", "45.5 % of the side", "mostly syscall and copy", "ns/byte")
		browsertest.Run(t, p, press("Escape"))
		must.Equal(t, all, browsertest.Eval[int](t, p, boxes))
		browsertest.Run(t, p, press("ArrowDown ArrowDown"))
		shows("the widest program and its root", text("#flame-at"), "main", "% of the side")
		browsertest.Run(t, p, press("ArrowUp ArrowLeft Enter"))
		shows("its neighbour, zoomed", text("#flame-at"), "napi/fab-7")
		must.Equal(t, "true", browsertest.Eval[string](t, p, `document.getElementById(document.getElementById('flame').getAttribute('aria-activedescendant')).getAttribute('aria-selected')`))
		p.Do(t, chromedp.Click(chromedp.CSS(`#flame-reset`)))
	})

	t.Run("tells of a box under the pointer", func(t *testing.T) {
		browsertest.Eval[bool](t, p, `(b => { const r = b.getBoundingClientRect(); return b.dispatchEvent(new PointerEvent('pointermove', { bubbles: true, clientX: r.left + 5, clientY: r.top + 5 })); })(`+named("dev_gro_receive")+`)`)
		shows("the tooltip", text("#flame-tip"), "dev_gro_receive (kernel)", "8.33 % of the side", "0.055 cores", "165 samples", "mostly GRO")
	})

	t.Run("sums what a search finds, each part once", func(t *testing.T) {
		// gro: napi_gro_receive holds dev_gro_receive and tcp4_gro_receive.
		browsertest.Run(t, p, write("flame-search", "GRO"))
		shows("the sum", text("#flame-sum"), "8.33 % · 0.055 cores in 1 place")
		must.Equal(t, 3, browsertest.Eval[int](t, p, `document.querySelectorAll('#flame .box.hit').length`))
		browsertest.Run(t, p, write("flame-search", "no such function"))
		shows("the sum of nothing", text("#flame-sum"), "nothing found")
		browsertest.Run(t, p, write("flame-search", ""))
	})

	t.Run("shows the tables of the chosen side", func(t *testing.T) {
		shows("the table", text(".profile"), "raw/stream, sender", "syscall and copy", "0.660", "0.800", "rep_movs_alternative")
		p.Do(t, choose("flame-side", 3))
		shows("the table of another side", text(".profile"), "vxlan/stream, receiver", "VXLAN")
		if strings.Contains(text(".profile"), "raw/stream, sender") {
			t.Error("the table of the first side is still there")
		}
	})

	t.Run("holds one scenario against another", func(t *testing.T) {
		if got := text("#flame-against"); !strings.Contains(got, "raw/stream") || strings.Contains(got, "vxlan") {
			t.Errorf("vxlan's receiver can be held against %q, want raw's receiver alone", got)
		}
		p.Do(t, choose("flame-against", 1))
		shows("the legend", text("#flame-legend"), "costs more in vxlan/stream", "costs less than in raw/stream", "ns per byte")
		shows("the sum of the change", text("#flame-changes"), "vxlan/stream against raw/stream", "▲ +", "VXLAN")
		shows("a box", browsertest.Eval[string](t, p, named("vxlan_xmit")+`.getAttribute('aria-label')`), "raw/stream 0,", "costs more")
		shows("its colour", browsertest.Eval[string](t, p, named("vxlan_xmit")+`.style.backgroundColor`), "--more")
		browsertest.Run(t, p, write("flame-search", "vxlan"))
		shows("the sum", text("#flame-sum"), "0 → 0.1", "ns/byte (+0.1")
		p.Do(t, choose("flame-against", 0))
		shows("the graph by itself again", text("#flame-sum"), "% · ")
	})
}

func TestPageWithoutJavaScriptCanBeRead(t *testing.T) {
	t.Parallel()
	off := chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
		return err
	})
	p := browse(t, rigorous(t), 1000, off)
	pdf := string(browsertest.Run(t, p, chromedp.PrintToPDF()))
	if !strings.HasPrefix(pdf, "%PDF-") {
		t.Fatal("the page cannot be printed")
	}
	seen := browsertest.Eval[string](t, p, `document.body.innerText`)
	for _, want := range []string{"need JavaScript", "≠ differs", "✓ holds", "the bridge", "−2.0", "raw/stream, sender", "vxlan/stream, receiver", "syscall and copy", "by the CPU meter"} {
		if !strings.Contains(seen, want) {
			t.Errorf("without JavaScript the page does not show %q", want)
		}
	}
	for _, dead := range []string{"Reset", "What it costs in", "point at it to read why", "Each box is a function"} {
		if strings.Contains(seen, dead) {
			t.Errorf("without JavaScript the page shows %q, which does nothing", dead)
		}
	}
}
