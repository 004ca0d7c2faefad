package drawings

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"windtunnel/internal/must"
	"windtunnel/lab/profile/folded"
	"windtunnel/lab/report/browsertest"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/report/reporttest"
)

// pictures is a report of a real run. The test of the first screen then writes the
// pictures of it in docs/.
var pictures = flag.String("pictures", "", "HTML `report` of which TestTheFirstScreen writes docs/first-screen-*.png")

// firstScreen opens the sample run, or the report of -pictures.
func firstScreen(t *testing.T, width int64, scheme string) *browsertest.Tab {
	t.Helper()
	if *pictures == "" {
		return browse(t, rigorous(t), width, browsertest.Scheme(scheme))
	}
	file := must.Get(filepath.Abs(*pictures))(t)
	return browsertest.Open(t, "file://"+file, width, browsertest.Scheme(scheme))
}

// bottom returns the lower edge of the first element that matches, in pixels from the top
// of the page.
func bottom(t *testing.T, p *browsertest.Tab, selector string) float64 {
	t.Helper()
	return browsertest.Eval[float64](t, p, fmt.Sprintf("document.querySelector(%q).getBoundingClientRect().bottom + scrollY", selector))
}

// compressed returns a picture of the 256 most frequent colours, which has fewer bytes.
func compressed(t *testing.T, picture []byte) []byte {
	t.Helper()
	decoded := must.Get(png.Decode(bytes.NewReader(picture)))(t)
	size := decoded.Bounds()
	pixels := make(map[color.Color]int)
	for y := range size.Dy() {
		for x := range size.Dx() {
			pixels[decoded.At(x, y)]++
		}
	}
	frequent := slices.SortedFunc(maps.Keys(pixels), func(a, b color.Color) int { return cmp.Compare(pixels[b], pixels[a]) })
	reduced := image.NewPaletted(size, frequent[:min(len(frequent), 256)])
	draw.Draw(reduced, size, decoded, size.Min, draw.Src)
	var b bytes.Buffer
	must.Succeed(t, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, reduced))
	return b.Bytes()
}

func TestTheFirstScreen(t *testing.T) {
	must.Long(t)
	t.Parallel()
	for _, scheme := range []string{"light", "dark"} {
		for width, height := range map[int64]int64{1280: 800, 780: 1000, 400: 800} {
			t.Run(fmt.Sprintf("%s-%d", scheme, width), func(t *testing.T) {
				p := firstScreen(t, width, scheme)
				p.Do(t, chromedp.EmulateViewport(width, height))
				p.Until(t, `String(document.querySelector('main .panels svg').clientWidth <= innerWidth)`, "true")
				last := 0.0
				for _, part := range []string{"h1", "#answer", "#systems", "main .panels .chart"} {
					at := bottom(t, p, part)
					if at <= last {
						t.Errorf("%s ends at %.0f, above the part before it (%.0f)", part, at, last)
					}
					if last = at; width == 1280 && at > 800 {
						t.Errorf("%s ends at %.0f, want above 800", part, at)
					}
				}
				if w := browsertest.Eval[int64](t, p, `document.documentElement.scrollWidth`); w > width {
					t.Errorf("the page is %d pixels wide, want %d", w, width)
				}
				if over := browsertest.Eval[[]string](t, p, `[...document.querySelectorAll('.systems th')].filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.textContent)`); len(over) > 0 {
					t.Errorf("at %d pixels these headings are cut: %q", width, over)
				}
				if over := browsertest.Eval[int](t, p, `[...document.querySelectorAll('.save')].filter(b => { const hint = b.closest('section').querySelector('.panels + .hint'); return hint && b.getBoundingClientRect().bottom > hint.getBoundingClientRect().top && b.getBoundingClientRect().top < hint.getBoundingClientRect().bottom; }).length`); over > 0 {
					t.Errorf("buttons of %d charts cover the text below", over)
				}
				if wrong := browsertest.Eval[[]string](t, p, `[2, 3, 4, 5].flatMap(column => {
					const cells = [...document.querySelectorAll('.systems td:nth-child(' + column + ')')].filter(c => c.querySelector('.bar'));
					const values = cells.map(c => +c.querySelector('b').textContent.replace(',', '')), bars = cells.map(c => c.querySelector('.bar').offsetWidth);
					return cells.filter((_, i) => Math.abs(bars[i] / Math.max(...bars) - values[i] / Math.max(...values)) > 0.02).map(c => c.textContent);
				})`); len(wrong) > 0 {
					t.Errorf("the lengths of these bars are not in the ratio of the figures: %q", wrong)
				}
				cards := browsertest.Eval[bool](t, p, `getComputedStyle(document.querySelector('.systems tr:nth-child(2)')).display === 'grid'`)
				if cards != (width == 400) {
					t.Errorf("at %d pixels rows are cards: %v", width, cards)
				}
				if said := browsertest.Eval[string](t, p, `document.querySelector('#answer').textContent`); strings.Contains(said, "would have been detected") || strings.Contains(said, "[") {
					t.Errorf("the verdict has intervals: %s", said)
				}
				if *pictures != "" && width != 780 {
					picture := compressed(t, browsertest.Run(t, p, chromedp.CaptureScreenshot()))
					if len(picture) > 150_000 {
						t.Errorf("the picture has %d bytes", len(picture))
					}
					must.Succeed(t, os.WriteFile(fmt.Sprintf("../../../docs/first-screen-%s-%d.png", scheme, width), picture, 0o644))
				}
			})
		}
	}
}

func TestTheAxisOfRatiosNamesEachPowerOfTen(t *testing.T) {
	must.Long(t)
	t.Parallel()
	r := reporttest.Quick()
	r.Comparisons = r.Comparisons[:1]
	r.Comparisons[0].Ratio = quantity.Interval{Median: 1, Low: 0.0005, High: 2000, N: 8}
	p := browse(t, r, 1280)
	p.Until(t, `[...document.querySelectorAll('#c-ratios svg text')].map(e => e.textContent).filter(e => /^[0-9.]+$/.test(e)).join(' ')`, "0.001 0.01 0.1 1 10 100 1000")
}

func TestNarrowChartsKeepTheirIntervals(t *testing.T) {
	must.Long(t)
	t.Parallel()
	p := browse(t, reporttest.Quick(), 400)
	intervals := `String([...document.querySelectorAll('#c-ratios svg text')].filter(e => /^\[[0-9.]+, [0-9.]+\]$/.test(e.textContent)).length)`
	p.Until(t, intervals, "16")
}

func TestALinkOfTheContentsOpensAFoldedSection(t *testing.T) {
	t.Parallel()
	p := browse(t, reporttest.Quick(), 1280)
	open := `[...document.querySelectorAll('.fold > details')].map(d => d.open).join()`
	p.Until(t, open, "false,false,false,false")
	p.Do(t, chromedp.Click(chromedp.CSS(`.contents a[href="#h-method"]`)))
	p.Until(t, open, "false,true,false,false")
	must.Equal(t, "", browsertest.Eval[string](t, p, `[...document.querySelectorAll('.contents a')].filter(a => !document.querySelector(a.hash)).map(a => a.hash).join()`))
}

func TestEachCategoryOfAProfileHasItsOwnLook(t *testing.T) {
	must.Long(t)
	t.Parallel()
	r := reporttest.Quick()
	p := &folded.Profile{Node: "a", Side: "sender", CPUs: []int{0}, Seconds: 3, Rate: 997, Clock: "cpu-clock"}
	const categories = 30
	for i := range categories {
		p.Stacks = append(p.Stacks, folded.Stack{Category: fmt.Sprintf("category %d", i), Comm: "traffic", Frames: []string{"main", fmt.Sprintf("f%d", i)}, Count: 60, Nanos: 60_000_000})
		p.Samples += 60
	}
	r.Profiles = []model.Profile{packedProfile(t, "raw/stream", p, 0.6)}
	page := browse(t, r, 1280)
	page.Until(t, flameReady, "yes")
	for _, of := range []string{".profile .chip", "#flame-legend .chip", "#flame .box[aria-level=\"4\"]"} {
		got := browsertest.Eval[[]string](t, page, `[...document.querySelectorAll('`+of+`')].map(e => getComputedStyle(e).backgroundColor + getComputedStyle(e).backgroundImage)`)
		looks := map[string]int{}
		for _, look := range got {
			looks[look]++
		}
		if len(looks) < categories {
			t.Errorf("%s: %d looks of %d categories (%d elements)", of, len(looks), categories, len(got))
		}
	}
}

func TestEachChartIsSavedAsSVGAndPNG(t *testing.T) {
	must.Long(t)
	t.Parallel()
	p := browse(t, rigorous(t), 1280)
	browsertest.Eval[bool](t, p, `(window.files = [], HTMLAnchorElement.prototype.click = function () { files.push(this.download + ' ' + this.href.slice(0, 40)); }, true)`)
	charts := browsertest.Eval[int](t, p, `document.querySelectorAll('.chart svg').length`)
	browsertest.Eval[bool](t, p, `(document.querySelectorAll('.save button').forEach(b => b.click()), true)`)
	p.Until(t, `String(files.length)`, fmt.Sprint(2*charts))
	files := strings.Join(browsertest.Eval[[]string](t, p, `files`), "\n")
	for _, want := range []string{"streams-main.svg data:image/svg+xml;charset=utf-8,", "streams-main.png data:image/png;base64,", "ratios.png data:image/png;base64,"} {
		if !strings.Contains(files, want) {
			t.Errorf("there is no file %q:\n%s", want, files)
		}
	}
	// 2 pixels of the picture are 1 of the chart.
	if got := browsertest.Run(t, p, chromedp.Evaluate[string](`new Promise(done => {
		HTMLAnchorElement.prototype.click = function () { const i = new Image(); i.onload = () => done(i.width + ' ' + i.height); i.src = this.href; };
		document.querySelectorAll('.save button')[1].click();
	})`, chromedp.EvalAwaitPromise)); got != browsertest.Eval[string](t, p, `(s => 2 * s.getAttribute('width') + ' ' + 2 * s.getAttribute('height'))(document.querySelector('.chart svg'))`) {
		t.Errorf("the picture has the size %s", got)
	}
	if problems, requests := p.Seen(); len(problems)+len(requests) > 0 {
		t.Errorf("the page said %q and asked for %q", problems, requests)
	}
}
