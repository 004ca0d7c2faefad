package html

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"windtunnel/lab/report"
)

// tab is a page in a real browser, and all that went wrong in it.
type tab struct {
	context.Context
	end func()
	url string

	mu       sync.Mutex
	problems []string // console errors and exceptions
	requests []string // everything the page asked for but itself
}

func (p *tab) seen() (problems, requests []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.problems, p.requests
}

// browse writes the report to a file and opens it in chromium at this width.
func browse(t *testing.T, r *report.Report, width int64, first ...chromedp.Action[chromedp.Void]) *tab {
	t.Helper()
	chromium := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			chromium = path
			break
		}
	}
	if chromium == "" {
		t.Skip("no chromium to open the page with: apt-get install chromium")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "report.html")
	if err := os.WriteFile(file, written(t, r), 0o644); err != nil {
		t.Fatal(err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(chromium), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.UserDataDir(filepath.Join(dir, "profile")))
	allocator, endAllocator := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(endAllocator)
	ctx, end := chromedp.NewContext(allocator)
	t.Cleanup(func() {
		_ = chromedp.Cancel(ctx) // waits for the browser to end
		end()
	})
	p := &tab{Context: ctx, end: end, url: "file://" + file}
	p.do(t, chromedp.EmulateViewport(width, 900))
	p.listen(t)
	p.do(t, append(first, chromedp.Navigate(p.url))...)
	return p
}

// listen collects from here on what the page says and asks for.
func (p *tab) listen(t *testing.T) {
	console := chromedp.Console(p)
	requests := chromedp.Events(p, network.RequestWillBeSent)
	if _, err := chromedp.Call(p, network.Enable, network.EnableParams{}); err != nil {
		t.Fatal(err)
	}
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
			if e.Request.URL != p.url {
				p.note(&p.requests, e.Request.URL)
			}
		}
	}()
}

func (p *tab) note(list *[]string, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	*list = append(*list, text)
}

// do runs actions, each within a bound of time.
func (p *tab) do(t *testing.T, actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	for _, a := range actions {
		run(t, p, a)
	}
}

// run returns what an action yields.
func run[T any](t *testing.T, p *tab, a chromedp.Action[T]) T {
	t.Helper()
	bound := time.AfterFunc(30*time.Second, p.end)
	defer bound.Stop()
	v, err := chromedp.Run(p, a)
	if err != nil {
		problems, _ := p.seen()
		t.Fatalf("chromium: %v (the page said %q)", err, problems)
	}
	return v
}

// eval returns what an expression is in the page.
func eval[T any](t *testing.T, p *tab, expression string) T {
	t.Helper()
	return run(t, p, chromedp.Evaluate[T](expression))
}

// scheme makes the page light or dark.
func scheme(name string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}},
		})
		return err
	})
}
