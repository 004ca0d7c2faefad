package html

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"windtunnel/lab/report"
)

// tab is a page in a real browser, and all that went wrong in it.
type tab struct {
	context.Context
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
func browse(t *testing.T, r *report.Report, width int64, first ...chromedp.Action) *tab {
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
		chromedp.Flag("disable-component-update", true), chromedp.WSURLReadTimeout(25*time.Second),
		chromedp.UserDataDir(filepath.Join(dir, "profile")))
	allocator, endAllocator := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(endAllocator)
	ctx, end := chromedp.NewContext(allocator)
	t.Cleanup(func() {
		_ = chromedp.Cancel(ctx) // waits for the browser to end
		end()
	})
	ctx, stop := context.WithTimeout(ctx, 40*time.Second)
	t.Cleanup(stop)
	p := &tab{Context: ctx, url: "file://" + file}
	chromedp.ListenTarget(ctx, p.listen)
	p.do(t, append(append([]chromedp.Action{network.Enable(), runtime.Enable(), chromedp.EmulateViewport(width, 900)}, first...),
		chromedp.Navigate(p.url))...)
	return p
}

func (p *tab) listen(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		p.problems = append(p.problems, e.ExceptionDetails.Error())
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.APITypeError || e.Type == runtime.APITypeWarning {
			for _, a := range e.Args {
				p.problems = append(p.problems, string(a.Value)+a.Description)
			}
		}
	case *network.EventRequestWillBeSent:
		if e.Request.URL != p.url {
			p.requests = append(p.requests, e.Request.URL)
		}
	}
}

func (p *tab) do(t *testing.T, actions ...chromedp.Action) {
	t.Helper()
	if err := chromedp.Run(p, actions...); err != nil {
		problems, _ := p.seen()
		t.Fatalf("chromium: %v (the page said %q)", err, problems)
	}
}

// eval returns what an expression is in the page.
func eval[T any](t *testing.T, p *tab, expression string) T {
	t.Helper()
	var v T
	p.do(t, chromedp.Evaluate(expression, &v))
	return v
}
