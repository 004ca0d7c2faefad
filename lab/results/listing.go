package results

import (
	"encoding/json"
	"fmt"
	"io"
)

// WriteRunsJSON writes the list of runs for programs: one array. Times are RFC 3339.
func WriteRunsJSON(w io.Writer, runs []RunSummary) error {
	if runs == nil {
		runs = []RunSummary{}
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(runs); err != nil {
		return fmt.Errorf("write the list of runs as JSON: %w", err)
	}
	return nil
}
