// Package export writes a report for programs: JSON, CSV and Go's benchmark
// format.
package export

import (
	"encoding/json"
	"fmt"
	"io"

	"windtunnel/lab/report/model"
)

// WriteJSON writes the report as one JSON document. See model.Report for its form. A
// metric that was not measured is absent. The name of a number ends in its unit.
func WriteJSON(w io.Writer, r *model.Report) error {
	document := *r
	// These lists are present even if they are empty.
	if document.Scenarios == nil {
		document.Scenarios = []model.Scenario{}
	}
	if document.Comparisons == nil {
		document.Comparisons = []model.Comparison{}
	}
	if err := JSON(w, document); err != nil {
		return fmt.Errorf("run %s: %w", r.Run.ID, err)
	}
	return nil
}

// JSON writes a value as one indented JSON document. Times are RFC 3339.
func JSON(w io.Writer, value any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(value); err != nil {
		return fmt.Errorf("write the output as JSON: %w", err)
	}
	return nil
}
