package serve

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"time"

	"windtunnel/internal/phrase"
	"windtunnel/lab/report/compare/source"
	"windtunnel/lab/report/document"
	"windtunnel/lab/report/export"
	"windtunnel/lab/results"
	"windtunnel/lab/sample"
)

// perPage is the number of runs on one page of the list.
const perPage = 100

// runList is the data of runs.html.
type runList struct {
	Store  string
	Suite  string // only its runs are shown; "": all
	Suites []string
	Runs   []runRow
	Shown  string // "runs 101 to 200 of 1,000"
	Newer  string // URL; "" on the first page
	Older  string
}

type runRow struct {
	results.RunSummary
	Took  string
	Live  bool
	Shown string // headline, or the title of the suite
}

// runsPage is the list of runs, newest first. It reads no samples.
func (s *Site) runsPage(w http.ResponseWriter, r *http.Request) error {
	all, err := s.options.Store.Runs()
	if err != nil {
		return err
	}
	list := runList{Store: s.options.Store.Path(), Suite: r.FormValue("suite"), Suites: source.Suites(all)}
	slices.Sort(list.Suites)
	if list.Suite != "" {
		all = slices.DeleteFunc(all, func(x results.RunSummary) bool { return x.Suite != list.Suite })
	}
	number, pages := 1, max(1, (len(all)+perPage-1)/perPage)
	if text := r.FormValue("page"); text != "" {
		if number, err = strconv.Atoi(text); err != nil || number < 1 || number > pages {
			return &problem{http.StatusNotFound, "No such page", "The list has " + phrase.Count(pages, "page") + "."}
		}
	}
	first, end := (number-1)*perPage, min(number*perPage, len(all))
	for _, x := range all[first:end] {
		list.Runs = append(list.Runs, rowOf(x))
	}
	list.Shown = phrase.Count(len(all), "run")
	if pages > 1 {
		list.Shown = "runs " + strconv.Itoa(first+1) + " to " + strconv.Itoa(end) + " of " + strconv.Itoa(len(all))
	}
	if number > 1 {
		list.Newer = query("/", "suite", list.Suite, "page", strconv.Itoa(number-1))
	}
	if number < pages {
		list.Older = query("/", "suite", list.Suite, "page", strconv.Itoa(number+1))
	}
	s.show(w, http.StatusOK, "runs.html", page{Title: "Runs", Links: []document.Link{{Text: "Compare", URL: "/compare"}, {Text: "Trend", URL: "/trend"}}, Data: list})
	return nil
}

func rowOf(r results.RunSummary) runRow {
	row := runRow{RunSummary: r, Live: r.Status == sample.Running, Shown: cmp.Or(r.Headline, r.Title)}
	if !r.Finished.IsZero() {
		row.Took = r.Finished.Sub(r.Started).Round(time.Second).String()
	}
	return row
}

// runsJSON is the list as `windtunnel runs --format json` prints it.
func (s *Site) runsJSON(w http.ResponseWriter, _ *http.Request) error {
	list, err := s.options.Store.Runs()
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_ = export.JSON(w, list) // the reader may have left
	return nil
}
