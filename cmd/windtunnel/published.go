package main

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"windtunnel/lab/report"
	"windtunnel/lab/report/model"
	"windtunnel/lab/results"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
	"windtunnel/suites"
)

// publishedReports returns the reports of runs that are named by ID or by suite. Without
// names it returns one for each suite that has tables of documents.
func publishedReports(store *results.Store, names []string) ([]*model.Report, error) {
	if len(names) == 0 {
		var err error
		if names, err = documentedSuites(); err != nil {
			return nil, err
		}
	}
	runs, err := store.Runs()
	if err != nil {
		return nil, err
	}
	var reports []*model.Report
	for _, name := range names {
		if slices.Contains(suites.Names(), name) {
			if name, err = fullestRun(runs, name); err != nil {
				return nil, err
			}
		}
		r, err := publishedReport(store, name)
		if err != nil {
			return nil, err
		}
		reports = append(reports, r)
	}
	return reports, nil
}

// publishedReport returns the report of a run with the present texts of its suite.
func publishedReport(store *results.Store, run string) (*model.Report, error) {
	data, err := store.Load(run)
	if err != nil {
		return nil, err
	}
	if err := refreshTexts(&data.Plan); err != nil {
		return nil, err
	}
	return report.Build(data.Run, data.Plan, data.Samples), nil
}

// fullLengthReports returns the reports of the newest full-length run of each suite that has
// tables of documents. A suite without such a run has no report.
func fullLengthReports(store *results.Store) ([]*model.Report, error) {
	names, err := documentedSuites()
	if err != nil {
		return nil, err
	}
	runs, err := store.Runs()
	if err != nil {
		return nil, err
	}
	var reports []*model.Report
	for _, name := range names {
		now, err := loadPlan(name, suite.ExpandOptions{})
		if err != nil {
			return nil, err
		}
		for _, r := range runs {
			if r.Suite != name || r.Status != sample.Complete {
				continue
			}
			data, err := store.Load(r.ID)
			if err != nil {
				return nil, err
			}
			if !fullLength(&data.Plan, now) {
				continue
			}
			report, err := publishedReport(store, r.ID)
			if err != nil {
				return nil, err
			}
			reports = append(reports, report)
			break
		}
	}
	if len(reports) == 0 {
		return nil, fmt.Errorf("no suite has a complete run of full length, so no page was written; make one with `windtunnel run SUITE` (%s), or name the runs and suites to show", strings.Join(names, ", "))
	}
	return reports, nil
}

// fullLength reports whether a stored plan has every scenario of the suite's full form, with
// at least its number of trials and its durations.
func fullLength(stored, now *suite.Plan) bool {
	if stored.Trials < now.Trials {
		return false
	}
	for i := range now.Scenarios {
		wanted := &now.Scenarios[i]
		at := slices.IndexFunc(stored.Scenarios, func(sc suite.Scenario) bool { return sc.ID == wanted.ID })
		if at < 0 || stored.Scenarios[at].Timing.Duration < wanted.Timing.Duration {
			return false
		}
	}
	return true
}

// publishedPage returns the name of the file with the page of a suite.
func publishedPage(suite string) string { return "published-" + suite + ".md" }

// writePages writes one page for each report to a directory, and names them on out. It does
// not change the other files of the directory.
func writePages(out io.Writer, dir string, reports []*model.Report) error {
	of := map[string]string{} // run by page
	for _, r := range reports {
		page := publishedPage(r.Run.Suite)
		if other := of[page]; other != "" {
			return fmt.Errorf("--output %s: the runs %s and %s are both of suite %s, which has one page; name one of them", dir, other, r.Run.ID, r.Run.Suite)
		}
		of[page] = r.Run.ID
	}
	for _, r := range reports {
		page := filepath.Join(dir, publishedPage(r.Run.Suite))
		if err := writeFile(page, publishedFormat, r); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(out, "%s: run %s\n", page, r.Run.ID); err != nil {
			return err
		}
	}
	return nil
}

// refreshTexts replaces the causes of a stored plan with those of its suite, because most
// causes are found after the run. If the suite still has each scenario of the plan, refreshTexts also
// replaces the notes and the published figures, which can have been corrected. The hypotheses
// stay, because they must precede the run.
func refreshTexts(plan *suite.Plan) error {
	if !slices.Contains(suites.Names(), plan.Suite) {
		return nil
	}
	now, err := loadPlan(plan.Suite, suite.ExpandOptions{})
	if err != nil {
		return err
	}
	plan.Causes = now.Causes
	known := map[string]bool{} // scenarios of the suite, as JSON
	for _, sc := range now.Scenarios {
		text, err := json.Marshal(sc)
		if err != nil {
			return fmt.Errorf("encode scenario %s of suite %s: %w", sc.ID, plan.Suite, err)
		}
		known[string(text)] = true
	}
	for _, sc := range plan.Scenarios {
		text, err := json.Marshal(sc)
		if err != nil {
			return fmt.Errorf("encode scenario %s of a stored run of %s: %w", sc.ID, plan.Suite, err)
		}
		if !known[string(text)] {
			return nil
		}
	}
	plan.Notes, plan.Tables, plan.Published = now.Notes, now.Tables, now.Published
	return nil
}

// documentedSuites lists the suites that have tables of documents.
func documentedSuites() ([]string, error) {
	var names []string
	for _, name := range suites.Names() {
		plan, err := loadPlan(name, suite.ExpandOptions{})
		if err != nil {
			return nil, err
		}
		if len(plan.Tables) > 0 {
			names = append(names, name)
		}
	}
	return names, nil
}

// fullestRun returns the ID of the suite's complete run with the most scenarios, the newest
// of them. runs has the newest run first.
func fullestRun(runs []results.RunSummary, of string) (string, error) {
	runs = slices.DeleteFunc(slices.Clone(runs), func(r results.RunSummary) bool { return r.Suite != of || r.Status != sample.Complete })
	if len(runs) == 0 {
		return "", fmt.Errorf("there is no complete run of suite %s; make one with `windtunnel run %s`, or name the runs and suites to show", of, of)
	}
	best := runs[0]
	for _, r := range runs[1:] {
		if r.Scenarios > best.Scenarios {
			best = r
		}
	}
	return best.ID, nil
}
