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

// WriteCSV writes one row a sample, every attempt, in the order of the plan:
// what it is of, then every metric by its name, empty where it was not
// measured. Started is RFC 3339 UTC; failure is "kind: message", empty where
// the trial yielded figures; gates are the conditions that it failed, as
// "name: message; …", and flags the outcomes; profiled is true or false. Figures
// count where failure and gates are empty and profiled is false. In each
// scenario the trials at the CPU distance that the report shows come first,
// then those at other distances: see the column cpu_distance_ns.
func WriteCSV(w io.Writer, r *model.Report) error {
	metrics := csvMetrics(r)
	header := slices.Clone(csvHead)
	for _, m := range metrics {
		header = append(header, string(m))
	}
	c := csv.NewWriter(w)
	_ = c.Write(header) // Error has the first error of all
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

// csvMetrics lists every known metric in the order of the reports, then those
// of the samples that are not among them, by name.
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
