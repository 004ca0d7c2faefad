package main

import (
	"fmt"
	"slices"

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
		data, err := store.Load(name)
		if err != nil {
			return nil, err
		}
		if err := refreshCauses(&data.Plan); err != nil {
			return nil, err
		}
		reports = append(reports, model.Build(data.Run, data.Plan, data.Samples))
	}
	return reports, nil
}

// refreshCauses replaces the causes of a stored plan by those of its suite, because most
// causes are found after the run.
func refreshCauses(plan *suite.Plan) error {
	if !slices.Contains(suites.Names(), plan.Suite) {
		return nil
	}
	now, err := loadPlan(plan.Suite, suite.ExpandOptions{})
	if err != nil {
		return err
	}
	plan.Causes = now.Causes
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
