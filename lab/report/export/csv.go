package export

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"windtunnel/lab/report/model"
	"windtunnel/lab/sample"
)

// csvHead are the columns before the metrics.
var csvHead = []string{"scenario", "system", "placement", "tool", "offload", "block", "attempt", "started", "failure", "gates", "flags", "profiled"}

// WriteCSV writes a row for each attempt, in the order of the plan. The columns of
// csvHead come first, then a column for each metric, in SI units. A metric that was not
// measured is empty. Some columns of csvHead:
//
//   - started: RFC 3339, UTC
//   - failure: "kind: message"; empty if the trial yielded figures
//   - gates: failed conditions as "name: message; …"
//   - flags: outcomes in the same form
//   - profiled: true or false
//
// Figures count if failure and gates are empty and profiled is false. Within a scenario
// the trials at the CPU distance that the report shows come first. Then follow trials at
// other distances; see the column cpu_distance_ns.
func WriteCSV(w io.Writer, r *model.Report) error {
	metrics := csvMetrics(r)
	header := slices.Clone(csvHead)
	for _, m := range metrics {
		header = append(header, string(m))
	}
	c := csv.NewWriter(w)
	_ = c.Write(header) // Error below returns the first error
	row := make([]string, len(header))
	for _, sc := range r.Everywhere() {
		for j := range sc.Samples {
			fillCSV(row, metrics, sc, &sc.Samples[j])
			_ = c.Write(row)
		}
	}
	c.Flush()
	if err := c.Error(); err != nil {
		return fmt.Errorf("write run %s as CSV: %w", r.Run.ID, err)
	}
	return nil
}

// csvMetrics lists all known metrics in the order of the reports. Then follow unknown
// metrics of the samples, by name.
func csvMetrics(r *model.Report) []sample.Metric {
	var list, others []sample.Metric
	known := make(map[sample.Metric]bool)
	for _, info := range sample.Known() {
		list = append(list, info.Metric)
		known[info.Metric] = true
	}
	for _, sc := range r.Everywhere() {
		for j := range sc.Samples {
			for m := range sc.Samples[j].Metrics {
				if !known[m] {
					known[m] = true
					others = append(others, m)
				}
			}
		}
	}
	slices.Sort(others)
	return append(list, others...)
}

func fillCSV(row []string, metrics []sample.Metric, sc *model.Scenario, s *sample.Sample) {
	failure := ""
	if s.Failure != nil {
		failure = s.Failure.String()
	}
	n := copy(row, []string{
		sc.ID, sc.System, sc.Placement, sc.Tool, sc.Offload,
		strconv.Itoa(s.Block), strconv.Itoa(s.Attempt), s.Started.UTC().Format(time.RFC3339Nano), failure,
		sample.GateText(s.Gates), sample.GateText(s.Flags), strconv.FormatBool(s.Profiled),
	})
	for i, m := range metrics {
		row[n+i] = ""
		if v, ok := s.Metrics[m]; ok {
			row[n+i] = strconv.FormatFloat(v, 'g', -1, 64)
		}
	}
}
