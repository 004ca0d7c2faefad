// Command picture extracts the chart of throughput and CPU from a report, for the
// README. It writes one SVG for light pages and one for dark pages. It needs
// chromium.
//
//	go run ./internal/picture out/RUN/report.html docs/report
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: go run ./internal/picture REPORT.html NAME (writes NAME-light.svg and NAME-dark.svg)")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "picture:", err)
		os.Exit(1)
	}
}

func run(report, name string) error {
	report, err := filepath.Abs(report)
	if err != nil {
		return err
	}
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		return fmt.Errorf("find chromium to open the report with (Debian package: chromium): %w", err)
	}
	ctx, end := context.WithTimeout(context.Background(), time.Minute)
	defer end()
	ctx, end = chromedp.NewExecAllocator(ctx, append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(chromium), chromedp.NoSandbox)...)
	defer end()
	ctx, end = chromedp.NewContext(ctx)
	defer end()
	for _, scheme := range []string{"light", "dark"} {
		text, err := chart(ctx, "file://"+report, scheme)
		if err != nil {
			return fmt.Errorf("extract the chart from %s: %w", report, err)
		}
		if err := os.WriteFile(name+"-"+scheme+".svg", []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// chart opens the page in a colour scheme and returns the chart as one SVG.
func chart(ctx context.Context, url, scheme string) (string, error) {
	media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}
	if _, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, media); err != nil {
		return "", err
	}
	if _, err := chromedp.Run(ctx, chromedp.EmulateViewport(1120, 900)); err != nil {
		return "", err
	}
	if _, err := chromedp.Run(ctx, chromedp.Navigate(url)); err != nil {
		return "", err
	}
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](collect))
	if err == nil && text == "" {
		err = errors.New("the report has no chart of throughput and CPU; give a report with figures that count")
	}
	return text, err
}

// collect returns one SVG with the panels of the first chart in a row, each with
// its caption above it; "" if the report has no chart.
const collect = `(() => {
	const panels = [...(document.querySelector('.panels')?.querySelectorAll('figure') ?? [])];
	const caption = 34;
	let x = 0, height = 0, body = '';
	for (const p of panels) {
		const svg = p.querySelector('svg').cloneNode(true), text = p.querySelector('figcaption');
		const title = text.textContent.trim().replace(/\s+/g, ' ').replace(/ sender receiver$/, ': sender above receiver'), colour = getComputedStyle(text).color;
		svg.removeAttribute('style');
		svg.setAttribute('x', x);
		svg.setAttribute('y', caption);
		body += '<text x="' + (x + 4) + '" y="20" fill="' + colour + '" font-family="system-ui, sans-serif" font-size="14" font-weight="600">' +
			title + '</text>\n' + new XMLSerializer().serializeToString(svg) + '\n';
		x += Number(svg.getAttribute('width'));
		height = Math.max(height, Number(svg.getAttribute('height')));
	}
	return body && '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ' + x + ' ' + (height + caption) + '" width="' + x + '" height="' + (height + caption) + '">\n' + body + '</svg>\n';
})()`
