// Package html writes a report as one self-contained page: without other files and
// without network access. Text, tables and topology are readable without JavaScript.
// Apache ECharts, which the page includes, draws the charts.
package html

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"strings"

	"windtunnel/lab/report/model"
)

//go:generate assets/build.sh

//go:embed assets/echarts.min.js assets/js/*.js assets/style.css assets/*.html
var assets embed.FS

func asset(name string) string {
	text, err := assets.ReadFile("assets/" + name)
	if err != nil {
		panic(err) // embedded at build time
	}
	return string(text)
}

var (
	echarts = strings.TrimSpace(asset("echarts.min.js"))
	script  = assemble()
	style   = asset("style.css")
	layout  = template.Must(template.New("page.html").Funcs(template.FuncMap{
		"last": func(i, n int) bool { return i == n-1 }, "amount": amount, "drops": dropsOf, "agreed": agreementMark, "judged": judgementMark,
	}).ParseFS(assets, "assets/*.html"))
)

// policy is the page's Content-Security-Policy. It allows only the page's two scripts,
// and no requests. So a hostile name in a suite does no harm, even if it is not escaped.
var policy = fmt.Sprintf("default-src 'none'; style-src 'unsafe-inline'; script-src %s %s; base-uri 'none'; form-action 'none'", digest(echarts), digest(script))

// digest returns the hash of a script, in the form of a Content-Security-Policy.
func digest(script string) string {
	sum := sha256.Sum256([]byte(script))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// Write writes the page. For a large run it omits the time series and per-hop counters of
// some trials. The page then says how many trials have them.
func Write(w io.Writer, r *model.Report) error {
	p, err := newPage(r)
	if err != nil {
		return fmt.Errorf("write run %s as HTML: %w", r.Run.ID, err)
	}
	var b bytes.Buffer
	if err := layout.Execute(&b, p); err != nil {
		return fmt.Errorf("write run %s as HTML: %w", r.Run.ID, err)
	}
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("write run %s as HTML: %w", r.Run.ID, err)
	}
	return nil
}
