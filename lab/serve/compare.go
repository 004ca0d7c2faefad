package serve

import (
	"bytes"
	"errors"
	"net/http"
	"slices"
	"strings"

	"windtunnel/internal/phrase"
	"windtunnel/lab/report/compare"
	"windtunnel/lab/report/compare/source"
	"windtunnel/lab/report/document"
	"windtunnel/lab/report/html"
	"windtunnel/lab/results"
	"windtunnel/lab/sample"
)

// Limits of one comparison. Each run is loaded with all its samples.
const mostCompared = 20

// comparison is what a request asks to compare. Each side has names of runs, separated by
// commas.
type comparison struct {
	A, B, Metric, Scenario string
	Across                 bool
	Metrics                []sample.Info // for the form
	Runs                   []runChoice   // for the form
}

// runChoice is a run that a form offers.
type runChoice struct {
	ID, Text string
	A, B     bool // the run is selected for the side
}

// choices returns the stored runs with those that are selected for the sides.
func (s *Site) choices(c comparison) (runs []runChoice, err error) {
	list, err := s.options.Store.Runs()
	if err != nil {
		return nil, err
	}
	selected := func(side string) (ids []string) {
		for _, name := range names(side) {
			if id, err := s.options.Store.Resolve(name); err == nil { // the form omits unknown runs
				ids = append(ids, id)
			}
		}
		return ids
	}
	a, b := selected(c.A), selected(c.B)
	for _, r := range list {
		runs = append(runs, runChoice{r.ID, runText(r), slices.Contains(a, r.ID), slices.Contains(b, r.ID)})
	}
	return runs, nil
}

// runText names a run in a list to choose from.
func runText(r results.RunSummary) string {
	parts := phrase.Lines{r.ID}
	parts.SayIf(r.Name != "", "%s", r.Name)
	parts.SayIf(r.Form.Words() != "", "%s", r.Form.Words())
	parts.SayIf(r.Status != sample.Complete, "%s", r.Status)
	return strings.Join(parts, " · ")
}

// comparePage compares side b with side a. Without both it is a form. The list of runs
// sends the selected runs as run; the older one is then A.
func (s *Site) comparePage(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	if selected := q["run"]; len(selected) > 0 {
		return s.selected(w, r, selected)
	}
	c := comparison{A: strings.Join(q["a"], ","), B: strings.Join(q["b"], ","), Metric: strings.Join(q["metric"], ","), Scenario: strings.Join(q["scenario"], ","), Across: q.Get("across") != ""}
	if c.A == "" || c.B == "" || q.Has("change") {
		c.Metrics = sample.Known()
		var err error
		if c.Runs, err = s.choices(c); err != nil {
			return err
		}
		s.show(w, http.StatusOK, "compare.html", page{Title: "Compare runs", Links: []document.Link{toRuns}, Data: c})
		return nil
	}
	opts, err := c.options()
	if err != nil {
		return badRequest(err)
	}
	list, err := s.options.Store.Runs()
	if err != nil {
		return err
	}
	ids, err := s.sides(c)
	if err != nil {
		return err
	}
	// The spread between runs comes from the complete runs of the suite.
	key := fingerprint(list, func(r results.RunSummary) bool { return r.Status == sample.Complete || slices.Contains(ids, r.ID) })
	page, err := keep(r.Context(), s, strings.Join([]string{"compare", r.URL.RawQuery, key}, " "), func() ([]byte, error) { return s.compare(c, opts) })
	if err != nil {
		return err
	}
	sendReport(w, page)
	return nil
}

// selected redirects from the runs that are selected in the list to the address of their
// comparison.
func (s *Site) selected(w http.ResponseWriter, r *http.Request, ids []string) error {
	if len(ids) != 2 {
		return &problem{http.StatusBadRequest, "Select two runs", "Select two runs in the list. To compare several runs of each side, select them in the form of /compare."}
	}
	list, err := s.options.Store.Runs()
	if err != nil {
		return err
	}
	order := func(id string) int {
		return slices.IndexFunc(list, func(r results.RunSummary) bool { return r.ID == id })
	}
	if order(ids[0]) < order(ids[1]) { // the list begins with the newest
		slices.Reverse(ids)
	}
	http.Redirect(w, r, query("/compare", "a", ids[0], "b", ids[1]), http.StatusFound)
	return nil
}

func (c comparison) options() (opts compare.Options, err error) {
	opts = compare.Options{AcrossMachines: c.Across, Scenarios: names(c.Scenario)}
	for _, name := range names(c.Metric) {
		m, err := compare.Metric(name)
		if err != nil {
			return opts, err
		}
		opts.Metrics = append(opts.Metrics, m)
	}
	if n := len(names(c.A)) + len(names(c.B)); n > mostCompared {
		return opts, errors.New("the comparison has too many runs; name at most 10 runs for each side")
	}
	return opts, nil
}

// names splits a list at its commas.
func names(list string) []string {
	var all []string
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.TrimSpace(name); name != "" {
			all = append(all, name)
		}
	}
	return all
}

// sides returns the IDs of all runs of a comparison.
func (s *Site) sides(c comparison) (ids []string, err error) {
	for _, name := range names(c.A + "," + c.B) {
		id, err := s.options.Store.Resolve(name)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

func (s *Site) compare(c comparison, opts compare.Options) ([]byte, error) {
	a, err := source.Runs(s.options.Store, strings.Join(names(c.A), ","))
	if err != nil {
		return nil, err
	}
	b, err := source.Runs(s.options.Store, strings.Join(names(c.B), ","))
	if err != nil {
		return nil, err
	}
	if opts.History, err = source.History(s.options.Store, b[0].Run.Suite); err != nil {
		return nil, err
	}
	made, err := compare.Runs(a, b, opts)
	if err != nil {
		return nil, badRequest(err)
	}
	change := query("/compare", "a", c.A, "b", c.B, "metric", c.Metric, "scenario", c.Scenario, "across", flag(c.Across), "change", "1")
	var page bytes.Buffer
	err = html.Site{Links: []document.Link{toRuns, {Text: "Change the comparison", URL: change}}, Run: runURL}.Write(&page, made.Document())
	return page.Bytes(), err
}

// badRequest returns the error for a mistake in the address.
func badRequest(err error) error {
	return &problem{http.StatusBadRequest, "This cannot be shown", err.Error()}
}
