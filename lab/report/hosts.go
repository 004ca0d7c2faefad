package report

import (
	"maps"

	"windtunnel/lab/report/figures"
	"windtunnel/lab/report/hosts"
	"windtunnel/lab/report/model"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// buildMatrix is Build for a plan with a matrix. The report has the matrices, and the
// scenario of every pair unless these are too many.
func buildMatrix(run sample.Run, plan suite.Plan, samples []sample.Sample) *model.Report {
	wide, each := plan, run
	if plan.Large() {
		wide.Scenarios, wide.Comparisons, wide.Ladders, wide.Hypotheses = nil, nil, nil, nil
		wide.Tables, wide.Published, wide.Causes = nil, nil, nil
	} else {
		wide = *plan.Pairwise()
		each.Skipped = skippedPairs(run.Skipped, &plan)
	}
	r := build(each, wide, samples)
	clean, _ := figures.Clean(samples)
	r.HostMatrices, r.Findings = hosts.Matrices(&run, &plan, clean), nil
	for i := range r.HostMatrices {
		x := &r.HostMatrices[i]
		r.Findings = append(r.Findings, hosts.Findings(x)...)
		troubles := hosts.Troubles(x)
		r.Notes, r.Doubts = append(r.Notes, troubles...), append(r.Doubts, troubles...)
	}
	if r.Findings == nil {
		r.Findings = []string{"No trial yielded figures that count, so there are no findings."}
	}
	return r
}

// skippedPairs returns the reasons of skipped scenarios by the ID of each pair.
func skippedPairs(skipped map[string]string, plan *suite.Plan) map[string]string {
	all := maps.Clone(skipped)
	for _, sc := range plan.Scenarios {
		why := skipped[sc.ID]
		if why == "" {
			continue
		}
		delete(all, sc.ID)
		for i := range plan.Matrix.Len() {
			all[suite.PairID(sc.ID, plan.Matrix.Pair(i))] = why
		}
	}
	return all
}
