package serve

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"time"

	"windtunnel/lab/report/document"
	"windtunnel/lab/report/html"
	"windtunnel/lab/results"
)

//go:embed assets
var assets embed.FS

var layout = template.Must(template.New("").Funcs(template.FuncMap{
	"run": runURL, "query": query, "date": func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04") },
}).ParseFS(assets, "assets/*.html"))

// page has what every page of the application needs.
type page struct {
	Title  string
	Links  []document.Link
	Login  bool   // the browser goes on to the list of runs
	Script string // name of a script in assets; "": none
	Data   any
}

// runURL returns the URL of a run's report.
func runURL(id string) string { return "/runs/" + url.PathEscape(id) }

// query returns a path with a query of names and values. It omits empty values.
func query(path string, pairs ...string) string {
	values := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			values.Set(pairs[i], pairs[i+1])
		}
	}
	if len(values) == 0 {
		return path
	}
	return path + "?" + values.Encode()
}

// flag returns the value of a parameter of query that is set or not.
func flag(set bool) string {
	if set {
		return "1"
	}
	return ""
}

var toRuns = document.Link{Text: "Runs", URL: "/"}

// show answers with a page of the application.
func (s *Site) show(w http.ResponseWriter, status int, name string, p page) {
	var b bytes.Buffer
	if err := layout.ExecuteTemplate(&b, name, p); err != nil {
		s.options.Log.Printf("make the page %s: %v", name, err)
		http.Error(w, "The page cannot be made. The log of windtunnel serve has the reason.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // the browser may have left
}

// sendReport answers with a page of package html.
func sendReport(w http.ResponseWriter, page []byte) {
	w.Header().Set("Content-Security-Policy", html.Policy+"; frame-ancestors 'none'")
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(page)
}

// problem is an error with the status of the answer.
type problem struct {
	status      int
	title, text string
}

func (p *problem) Error() string { return p.text }

// fail answers with an error: a page for people, plain text for programs.
func (s *Site) fail(w http.ResponseWriter, r *http.Request, err error) {
	var p *problem
	switch {
	case r.Context().Err() != nil: // the reader has left, or the server ends
		p = &problem{http.StatusServiceUnavailable, "The server ends", "The server ends. Start windtunnel serve again."}
	case errors.As(err, &p):
	case errors.Is(err, results.ErrUnknownRun):
		p = &problem{http.StatusNotFound, "No such run", err.Error()}
	default:
		s.options.Log.Printf("%s: %v", r.URL.Path, err)
		p = &problem{http.StatusInternalServerError, "The store cannot be read", err.Error()}
	}
	path := r.URL.Path
	if strings.HasPrefix(path, "/api/") || strings.HasPrefix(path, "/static/") || path == "/metrics" || strings.HasSuffix(path, "/events") {
		http.Error(w, p.text, p.status)
		return
	}
	s.show(w, p.status, "error.html", page{Title: p.title, Links: []document.Link{toRuns}, Data: p.text})
}

func notFound(http.ResponseWriter, *http.Request) error {
	return &problem{http.StatusNotFound, "No such page", "There is no page at this address. The list of runs leads to all pages."}
}

// asset is a file that pages ask for.
type asset struct {
	kind string // content type
	text string
	tag  string // ETag
}

var files = map[string]asset{
	"style.css": file("text/css; charset=utf-8", html.Style()+embedded("site.css")),
	"live.js":   file("text/javascript; charset=utf-8", embedded("live.js")),
	"icon.svg":  file("image/svg+xml", embedded("icon.svg")),
}

func file(kind, text string) asset {
	sum := sha256.Sum256([]byte(text))
	return asset{kind, text, `"` + hex.EncodeToString(sum[:8]) + `"`}
}

func embedded(name string) string {
	text, err := assets.ReadFile("assets/" + name)
	if err != nil {
		panic(err) // embedded at build time
	}
	return string(text)
}

// staticPattern is the pattern of the files, for which no token is needed.
const staticPattern = "/static/{name}"

func static(w http.ResponseWriter, r *http.Request) error {
	a, ok := files[r.PathValue("name")]
	if !ok {
		return notFound(w, r)
	}
	w.Header().Set("Content-Type", a.kind)
	w.Header().Set("ETag", a.tag)
	http.ServeContent(w, r, "", time.Time{}, strings.NewReader(a.text))
	return nil
}

// favicon is for browsers that ask for it without a link in the page.
func favicon(w http.ResponseWriter, _ *http.Request) error {
	w.WriteHeader(http.StatusNoContent)
	return nil
}
