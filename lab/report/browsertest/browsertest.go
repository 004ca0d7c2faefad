// Package browsertest opens pages in a real browser, for tests. A test is skipped if the
// machine has no chromium.
package browsertest

import (
	"context"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"windtunnel/internal/must"
	"windtunnel/internal/setup"
)

// Tab is a page in a real browser, and all that went wrong in it.
type Tab struct {
	context.Context
	end func()
	url string

	mu       sync.Mutex
	problems []string // console errors and exceptions
	requests []string // all requests of the page, without the page itself
}

// Readable returns a page without its scripts and style, with its entities resolved. Code is
// between backticks, as in the report.
func Readable(page []byte) string {
	page = regexp.MustCompile("</?code>").ReplaceAll(page, []byte("`"))
	return html.UnescapeString(string(regexp.MustCompile(`(?s)<(script|style)[ >].*?</(script|style)>`).ReplaceAll(page, nil)))
}

// OpenPage writes a page to a file and opens it; see Open.
func OpenPage(t *testing.T, page []byte, width int64, first ...chromedp.Action[chromedp.Void]) *Tab {
	t.Helper()
	file := filepath.Join(t.TempDir(), "report.html")
	must.Succeed(t, os.WriteFile(file, page, 0o644))
	return Open(t, "file://"+file, width, first...)
}

// Open opens a URL in chromium. The window is width pixels wide. The actions of first run
// before the page loads.
func Open(t *testing.T, url string, width int64, first ...chromedp.Action[chromedp.Void]) *Tab {
	t.Helper()
	chromium := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			chromium = path
			break
		}
	}
	if chromium == "" {
		t.Skip("chromium is not installed; get it with: " + setup.Command("chromium"))
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(chromium), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.UserDataDir(filepath.Join(t.TempDir(), "profile")))
	allocator, endAllocator := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(endAllocator)
	ctx, end := chromedp.NewContext(allocator)
	t.Cleanup(func() {
		_ = chromedp.Cancel(ctx) // waits for the browser to end
		end()
	})
	p := &Tab{Context: ctx, end: end, url: url}
	p.Do(t, chromedp.EmulateViewport(width, 900))
	p.listen(t)
	p.Do(t, first...)
	if _, err := run(p, chromedp.Navigate(p.url)); err != nil && !redirected(err) {
		t.Fatalf("open %s: %v", p.url, err)
	}
	return p
}

// redirected reports whether an action failed because the browser left the page meanwhile.
func redirected(err error) bool {
	return strings.Contains(err.Error(), "Inspected target navigated or closed")
}

// Seen returns the console errors and exceptions of the page, and the URLs that it asked
// for. The URL that was given to Open is not among them.
func (p *Tab) Seen() (problems, requests []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.problems, p.requests
}

// listen collects the page's console errors and requests from now on.
func (p *Tab) listen(t *testing.T) {
	console := chromedp.Console(p)
	requests := chromedp.Events(p, network.RequestWillBeSent)
	must.Get(chromedp.Call(p, network.Enable, network.EnableParams{}))(t)
	go func() {
		for m, err := range console {
			if err != nil {
				return // the browser has ended
			}
			if m.Type != chromedp.ConsoleLog {
				p.note(&p.problems, m.String())
			}
		}
	}()
	go func() {
		for e, err := range requests {
			if err != nil {
				return
			}
			if e.Request.URL != p.url && !strings.HasPrefix(e.Request.URL, "data:") { // a data URL needs no network
				p.note(&p.requests, e.Request.URL)
			}
		}
	}()
}

func (p *Tab) note(list *[]string, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	*list = append(*list, text)
}

// Do runs actions, each within a bound of time.
func (p *Tab) Do(t *testing.T, actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	for _, a := range actions {
		Run(t, p, a)
	}
}

// patience is the maximum time of an action. The first one starts chromium, a program of 300 MB: with a cold
// page cache and other tests beside it, that has taken more than 30 s.
const patience = 2 * time.Minute

// Run returns what an action yields.
func Run[T any](t *testing.T, p *Tab, a chromedp.Action[T]) T {
	t.Helper()
	v, err := run(p, a)
	p.check(t, err)
	return v
}

func run[T any](p *Tab, a chromedp.Action[T]) (T, error) {
	bound := time.AfterFunc(patience, p.end)
	defer bound.Stop()
	return chromedp.Run(p, a)
}

func (p *Tab) check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		problems, _ := p.Seen()
		t.Fatalf("chromium: %v (the page said %q)", err, problems)
	}
}

// Eval returns what an expression is in the page.
func Eval[T any](t *testing.T, p *Tab, expression string) T {
	t.Helper()
	return Run(t, p, chromedp.Evaluate[T](expression))
}

// Until waits until an expression has a value, because the browser reports changes to the
// page with a delay. The page may lead the browser to another page meanwhile.
func (p *Tab) Until(t *testing.T, expression, want string) {
	t.Helper()
	got := ""
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		v, err := run(p, chromedp.Evaluate[string](expression))
		if err != nil && redirected(err) {
			continue
		}
		p.check(t, err)
		if got = v; got == want {
			return
		}
	}
	t.Errorf("%s stays %q, want %q", expression, got, want)
}

// Scheme makes the page light or dark.
func Scheme(name string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}},
		})
		return err
	})
}
