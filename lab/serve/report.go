package serve

import (
	"bytes"
	"fmt"
	"net/http"

	"windtunnel/lab/report"
	"windtunnel/lab/report/document"
	"windtunnel/lab/report/drawings"
	"windtunnel/lab/report/html"
	"windtunnel/lab/report/model"
	"windtunnel/lab/results"
	"windtunnel/lab/sample"
)

// reportPage is the HTML report of a run. The beginning of an ID, or latest, leads to the
// address with the whole ID, which stays the same.
func (s *Site) reportPage(w http.ResponseWriter, r *http.Request) error {
	id, moved, err := s.resolve(w, r, "")
	if err != nil || moved {
		return err
	}
	key, running, err := s.state(id)
	if err != nil {
		return err
	}
	page, err := keep(r.Context(), s, "report "+key, func() ([]byte, error) { return s.report(id, running) })
	if err != nil {
		return err
	}
	sendReport(w, page)
	return nil
}

// resolve returns the ID of the run that the request names. If the request has another
// name of the run, resolve redirects to the address with the ID; below is the part of the
// path after the run.
func (s *Site) resolve(w http.ResponseWriter, r *http.Request, below string) (id string, moved bool, err error) {
	name := r.PathValue("id")
	if id, err = s.options.Store.Resolve(name); err != nil || id == name {
		return id, false, err
	}
	http.Redirect(w, r, runURL(id)+below, http.StatusFound)
	return id, true, nil
}

// state returns a text that changes whenever the run's report changes, and whether the
// run is in progress.
func (s *Site) state(id string) (key string, running bool, err error) {
	p, err := s.options.Store.Progress(id, 0)
	if err != nil {
		return "", false, err
	}
	return fmt.Sprintf("%s %s %d %d", id, p.Status, p.Finished.UnixNano(), len(p.Samples)), p.Status == sample.Running, nil
}

func (s *Site) report(id string, running bool) ([]byte, error) {
	r, err := s.build(id)
	if err != nil {
		return nil, err
	}
	trend := query("/trend", "suite", r.Run.Suite)
	if r.Run.Options.Form() != (sample.Form{}) {
		trend = query("/trend", "like", id)
	}
	links := []document.Link{toRuns, {Text: "Compare with another run", URL: query("/compare", "b", id)}, {Text: "Trend of " + r.Run.Suite, URL: trend}}
	if running {
		links = append(links, document.Link{Text: "Live view", URL: runURL(id) + "/live"})
	}
	d, err := drawings.Page(r)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = html.Site{Links: links, Run: runURL}.Write(&b, d)
	return b.Bytes(), err
}

func (s *Site) build(id string) (*model.Report, error) {
	data, err := s.options.Store.Load(id)
	if err != nil {
		return nil, err
	}
	return report.Build(data.Run, data.Plan, data.Samples), nil
}

// fingerprint returns a text that changes whenever one of the runs changes that keep
// selects.
func fingerprint(list []results.RunSummary, keep func(results.RunSummary) bool) string {
	var b bytes.Buffer
	for _, r := range list {
		if keep(r) {
			fmt.Fprintf(&b, "%s %s %d %d;", r.ID, r.Status, r.Finished.UnixNano(), r.Samples)
		}
	}
	return b.String()
}
