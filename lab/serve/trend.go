package serve

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"windtunnel/lab/report/compare"
	"windtunnel/lab/report/compare/source"
	"windtunnel/lab/report/document"
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
	Series                        []seriesChoice // for the form
	Metrics                       []sample.Info  // for the form
}

// seriesChoice is a series of runs that the form offers: those of one suite and form. Run is the
// newest of them.
type seriesChoice struct {
	Run, Text string
	Selected  bool
}

// allSeries returns the series of a list of runs, with the one that is selected.
func allSeries(list []results.RunSummary, selected series) (choices []seriesChoice) {
	seen := make(map[series]bool)
	for _, r := range list {
		if of := seriesOf(r); !seen[of] {
			seen[of] = true
			choices = append(choices, seriesChoice{r.ID, strings.TrimSuffix(r.Suite+", "+r.Form.Words(), ", "), of == selected})
		}
	}
	slices.SortFunc(choices, func(a, b seriesChoice) int { return strings.Compare(a.Text, b.Text) })
	return choices
}

// likeRun sets the suite to that of the run like, and returns the run's series.
func (s *Site) likeRun(c *trendChoice, list []results.RunSummary) (series, error) {
	if c.Like == "" {
		return series{suite: c.Suite}, nil
	}
	id, err := s.options.Store.Resolve(c.Like)
	if err != nil {
		return series{}, err
	}
	for _, r := range list {
		switch {
		case r.ID != id:
		case c.Suite != "" && c.Suite != r.Suite:
			return series{}, badRequest(fmt.Errorf("run %s is of suite %s: correct suite, or omit it", id, r.Suite))
		default:
			c.Suite = r.Suite
			return seriesOf(r), nil
		}
	}
	return series{}, badRequest(fmt.Errorf("run %s is new: try again", id))
}

// trendPage shows a metric over the runs of a suite. Without a suite or a run it is a form.
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
	selected, err := s.likeRun(&c, list)
	if err != nil {
		return err
	}
	if c.Suite == "" || q.Has("change") {
		c.Series, c.Metrics = allSeries(list, selected), sample.Known()
		s.show(w, http.StatusOK, "trend.html", page{Title: "Trend", Links: []document.Link{toRuns}, Data: c})
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
	err = html.Site{Links: []document.Link{toRuns, {Text: "Other metrics and scenarios", URL: change}}, Run: runURL}.Write(&page, t.Document())
	return page.Bytes(), err
}
