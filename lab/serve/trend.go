package serve

import (
	"bytes"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"windtunnel/lab/compare"
	"windtunnel/lab/compare/source"
	"windtunnel/lab/report/html"
	"windtunnel/lab/results"
	"windtunnel/lab/sample"
)

// Runs of a trend. Each is loaded with all its samples.
const (
	usualTrend = 50
	mostTrend  = 200
)

// trendChoice is what a request asks to follow.
type trendChoice struct {
	Suite, Like, Metric, Scenario string
	Last                          int
	Across                        bool
	Suites                        []string      // for the form
	Metrics                       []sample.Info // for the form
}

// trendPage shows a metric over the runs of a suite. Without a suite it is a form.
func (s *Site) trendPage(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	list, err := s.options.Store.Runs()
	if err != nil {
		return err
	}
	c := trendChoice{Suite: q.Get("suite"), Like: q.Get("like"), Metric: q.Get("metric"), Scenario: strings.Join(q["scenario"], ","), Last: usualTrend, Across: q.Get("across") != ""}
	if text := q.Get("last"); text != "" {
		if c.Last, err = strconv.Atoi(text); err != nil || c.Last < 1 || c.Last > mostTrend {
			return &problem{http.StatusBadRequest, "This cannot be shown", "A trend has 1 to " + strconv.Itoa(mostTrend) + " runs: correct last."}
		}
	}
	if c.Suite == "" || q.Has("change") {
		c.Suites, c.Metrics = source.Suites(list), sample.Known()
		slices.Sort(c.Suites)
		s.show(w, http.StatusOK, "trend.html", page{Title: "Trend", Links: []html.Link{toRuns}, Data: c})
		return nil
	}
	opts := compare.TrendOptions{Scenarios: names(c.Scenario), Last: c.Last, AcrossMachines: c.Across}
	if c.Metric != "" {
		if opts.Metric, err = compare.Metric(c.Metric); err != nil {
			return badRequest(err)
		}
	}
	if !slices.ContainsFunc(list, func(r results.RunSummary) bool { return r.Suite == c.Suite }) {
		return &problem{http.StatusNotFound, "No such suite", "The store has no run of this suite. It has runs of: " + strings.Join(source.Suites(list), ", ") + "."}
	}
	key := fingerprint(list, func(r results.RunSummary) bool { return r.Suite == c.Suite })
	page, err := keep(r.Context(), s, strings.Join([]string{"trend", r.URL.RawQuery, key}, " "), func() ([]byte, error) { return s.trend(c, opts) })
	if err != nil {
		return err
	}
	sendReport(w, page)
	return nil
}

func (s *Site) trend(c trendChoice, opts compare.TrendOptions) ([]byte, error) {
	runs, form, err := source.Suite(s.options.Store, c.Suite, c.Like, c.Last)
	if err != nil {
		return nil, err
	}
	opts.Form = form
	t, err := compare.NewTrend(c.Suite, runs, opts)
	if err != nil {
		return nil, badRequest(err)
	}
	last := ""
	if c.Last != usualTrend {
		last = strconv.Itoa(c.Last)
	}
	change := query("/trend", "suite", c.Suite, "like", c.Like, "metric", c.Metric, "scenario", c.Scenario, "last", last, "across", flag(c.Across), "change", "1")
	var page bytes.Buffer
	err = html.Site{Links: []html.Link{toRuns, {Text: "Other metrics and scenarios", URL: change}}, Run: runURL}.WriteTrend(&page, t)
	return page.Bytes(), err
}
