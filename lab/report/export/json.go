// Package export writes a report for programs: JSON, CSV and Go's benchmark
// format.
package export

import (
	"encoding/json"
	"fmt"
	"io"

	"windtunnel/lab/report/model"
)

// WriteJSON writes the report as one JSON document, the form that programs
// read: run, scenarios with their samples, comparisons. A metric that was not
// measured is absent. Numbers are in the SI unit that their name ends in.
func WriteJSON(w io.Writer, r *model.Report) error {
	document := *r
	// Lists of the contract are there also when empty.
	if document.Scenarios == nil {
		document.Scenarios = []model.Scenario{}
	}
	if document.Comparisons == nil {
		document.Comparisons = []model.Comparison{}
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(document); err != nil {
		return fmt.Errorf("write run %s as JSON: %w", r.Run.ID, err)
	}
	return nil
}
