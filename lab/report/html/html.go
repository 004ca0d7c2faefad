// Package html writes a document as one self-contained page: without other files and
// without network access. Text, tables and topology are readable without JavaScript.
// Apache ECharts, which the page includes, draws the charts.
package html

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"strings"

	"windtunnel/lab/report/document"
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
	script  = assemble(parts)
	sheet   = assemble(sheetParts)
	style   = asset("style.css")
	layout  = template.Must(template.New("page.html").Funcs(template.FuncMap{
		"last": func(i, n int) bool { return i == n-1 }, "prose": prose,
		"wordy": wordy, "shaded": shaded, "linked": Site{}.linked, "chip": page{}.chip, "draw": func(section) template.HTML { return "" },
	}).ParseFS(assets, "assets/*.html"))
)

// policy is the Content-Security-Policy of a page with the chart library and these
// scripts. It allows no other script and no request; a chart becomes a PNG by way of an
// image in a data URL. So a hostile name in a suite does no
// harm, even if it is not escaped.
func policy(scripts ...string) string {
	allowed := digest(echarts)
	for _, s := range scripts {
		allowed += " " + digest(s)
	}
	return "default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src " + allowed + "; base-uri 'none'; form-action 'none'"
}

// Policy is the Content-Security-Policy for a server of this package's pages. Each page
// also has its own policy, which is as strict or stricter.
var Policy = policy(script, sheet)

// digest returns the hash of a script, in the form of a Content-Security-Policy.
func digest(script string) string {
	sum := sha256.Sum256([]byte(script))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// Site is the web site that a page is a part of. The zero value is for pages that stand
// alone.
type Site struct {
	Links []document.Link // above the title
	// Run returns the URL of a run's report; nil if there is none.
	Run func(id string) string
}

// Write writes a page that stands alone; see Site.Write.
func Write(w io.Writer, d document.Document) error { return Site{}.Write(w, d) }

// Write writes the page of a document.
func (s Site) Write(w io.Writer, d document.Document) error {
	p, err := newPage(d)
	if err == nil {
		err = s.send(w, p)
	}
	if err != nil {
		return fmt.Errorf("write %q as HTML: %w", d.Title, err)
	}
	return nil
}

// linked escapes a text that begins with the ID of a run, and links the ID.
func (s Site) linked(text, run string) template.HTML {
	rest, ok := strings.CutPrefix(text, run)
	if run == "" || !ok || s.Run == nil {
		return prose(text)
	}
	return template.HTML(`<a href="`+template.HTMLEscapeString(s.Run(run))+`">`+template.HTMLEscapeString(run)+"</a>") + prose(rest)
}

// prose escapes a sentence, and marks the text between two backticks as code.
func prose(sentence string) template.HTML {
	parts := strings.Split(template.HTMLEscapeString(sentence), "`")
	if len(parts)%2 == 0 {
		return template.HTML(strings.Join(parts, "`"))
	}
	var b strings.Builder
	for i, part := range parts {
		if i%2 == 1 {
			part = "<code>" + part + "</code>"
		}
		b.WriteString(part)
	}
	return template.HTML(b.String())
}

// send writes a page, or nothing if the page cannot be made.
func (s Site) send(w io.Writer, p *page) error {
	p.Links = append(s.Links[:len(s.Links):len(s.Links)], p.Links...)
	all, err := layout.Clone()
	if err != nil {
		return err
	}
	execute := func(w io.Writer, name string, data any) error { return all.ExecuteTemplate(w, name+".html", data) }
	all.Funcs(template.FuncMap{"linked": s.linked, "chip": p.chip, "draw": func(of section) (template.HTML, error) {
		var b strings.Builder
		err := execute(&b, cmp.Or(of.Drawing, "section"), of)
		return template.HTML(b.String()), err
	}})
	var b bytes.Buffer
	if err := execute(&b, "page", p); err != nil {
		return err
	}
	_, err = w.Write(b.Bytes())
	return err
}

// Style returns the style sheet of the pages. The other pages of a site use it too.
func Style() string { return style }

// parts are the parts of the report's script, in the order in which they run. They
// share one closure, so a part may use the names of earlier parts.
var parts = []string{
	"kit", "bars", "cells", "latency", "ratios", "series", "roundtrips", "ladder", "curves", "trials",
	"charts", "save", "report", "draw", "choose", "tree", "flame", "profiles", "tables", "download",
}

// sheetParts are the parts of the script of comparisons and trends.
var sheetParts = []string{"kit", "ratios", "trend", "charts", "save", "sheet", "draw"}

// assemble joins parts to one script. The script defines no global names.
func assemble(parts []string) string {
	var b strings.Builder
	b.WriteString("(function () {\n'use strict';\n")
	for _, name := range parts {
		b.WriteString(asset("js/" + name + ".js"))
		b.WriteByte('\n')
	}
	b.WriteString("})();\n")
	return b.String()
}
