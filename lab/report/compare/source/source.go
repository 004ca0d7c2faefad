// Package source loads runs from a store for comparisons and trends.
package source

import (
	"fmt"
	"slices"
	"strings"

	"windtunnel/lab/report/compare"
	"windtunnel/lab/results"
	"windtunnel/lab/sample"
)

// side converts a stored run to the input of a comparison. It drops data that no
// comparison uses. It keeps the time series, which have the state of the machine
// during each trial.
func side(data *results.RunData) compare.Side {
	samples := make([]sample.Sample, len(data.Samples))
	for i, s := range data.Samples {
		s.Hops, s.Latency, s.Profiles = nil, "", nil
		samples[i] = s
	}
	plan := &data.Plan
	if !plan.Large() {
		plan = plan.Pairwise()
	}
	return compare.Side{Run: data.Run, Plan: *plan, Samples: samples}
}

// Runs loads the runs of one side. Commas separate their names; see results.Store.Load.
func Runs(store *results.Store, names string) ([]compare.Side, error) {
	var sides []compare.Side
	for name := range strings.SplitSeq(names, ",") {
		data, err := store.Load(strings.TrimSpace(name))
		if err != nil {
			return nil, err
		}
		sides = append(sides, side(data))
	}
	return sides, nil
}

// mostHistory is the largest number of stored runs that the spread between runs is
// estimated from.
const mostHistory = 30

// History loads the newest complete runs of a suite, at most mostHistory.
func History(store *results.Store, suite string) ([]compare.Side, error) {
	list, err := store.Runs()
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(r results.RunSummary) bool { return r.Suite != suite || r.Status != sample.Complete })
	slices.SortFunc(list, func(a, b results.RunSummary) int { return b.Started.Compare(a.Started) })
	var sides []compare.Side
	for _, r := range list[:min(len(list), mostHistory)] {
		data, err := store.Load(r.ID)
		if err != nil {
			return nil, err
		}
		sides = append(sides, side(data))
	}
	return sides, nil
}

// Suite loads the runs of a suite for a trend, and returns the form of the runs to show: that of
// the run like (see results.Store.Load). If like is empty, these are the runs of the whole suite
// on the engine's machine, or if there are none, the runs of the newest run's form. Of the
// complete runs of the form it loads the newest, at most most of them; 0 is all. Of other runs
// it loads no samples, because a trend only counts them.
func Suite(store *results.Store, suite, like string, most int) (runs []compare.Side, form sample.Form, err error) {
	list, err := store.Runs()
	if err != nil {
		return nil, form, err
	}
	of := slices.DeleteFunc(slices.Clone(list), func(r results.RunSummary) bool { return r.Suite != suite })
	if len(of) == 0 {
		return nil, form, noRuns(store, list, suite)
	}
	if form, err = formLike(store, of, like); err != nil {
		return nil, form, fmt.Errorf("trend of suite %q: %w", suite, err)
	}
	shown := 0
	for _, r := range of {
		if r.Status != sample.Complete || r.Form != form {
			runs = append(runs, compare.Side{Run: sample.Run{ID: r.ID, Suite: r.Suite, Started: r.Started, Status: r.Status, Options: r.Options}})
			continue
		}
		if shown++; most > 0 && shown > most {
			continue
		}
		data, err := store.Load(r.ID)
		if err != nil {
			return nil, form, err
		}
		runs = append(runs, side(data))
	}
	return runs, form, nil
}

// formLike returns the form of the run like. If like is empty, it returns the form that Suite
// shows by default. list has the runs of one suite, the newest first.
func formLike(store *results.Store, list []results.RunSummary, like string) (sample.Form, error) {
	if like != "" {
		id, err := store.Resolve(like)
		if err != nil {
			return sample.Form{}, err
		}
		i := slices.IndexFunc(list, func(r results.RunSummary) bool { return r.ID == id })
		if i < 0 {
			return sample.Form{}, fmt.Errorf("run %s is of another suite; name a run of this suite", id)
		}
		return list[i].Form, nil
	}
	complete := slices.DeleteFunc(slices.Clone(list), func(r results.RunSummary) bool { return r.Status != sample.Complete })
	if len(complete) == 0 || slices.ContainsFunc(complete, func(r results.RunSummary) bool { return r.Form == sample.Form{} }) {
		return sample.Form{}, nil
	}
	return complete[0].Form, nil
}

// noRuns is the error for a suite without runs. It lists the suites that have some.
func noRuns(store *results.Store, list []results.RunSummary, suite string) error {
	if len(list) == 0 {
		return fmt.Errorf("trend of suite %q: %s has no run yet; `windtunnel run quick` makes the first", suite, store.Path())
	}
	return fmt.Errorf("trend of suite %q: %s has no run of this suite; it has runs of: %s", suite, store.Path(), strings.Join(Suites(list), ", "))
}

// Suites returns the suites of a list of runs, in the order in which they first occur.
func Suites(list []results.RunSummary) []string {
	var names []string
	for _, r := range list {
		if !slices.Contains(names, r.Suite) {
			names = append(names, r.Suite)
		}
	}
	return names
}
