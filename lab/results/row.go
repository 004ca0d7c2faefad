package results

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"windtunnel/lab/sample"
)

// row is a sample in the form of its tables. Lists are marshalled, and outputs
// compressed, before the transaction begins, to keep that short.
type row struct {
	sample                                         sample.Sample
	series, hops, warnings, commands, gates, flags any // JSON text, or nil where empty
	outputs                                        []packedOutput
}

type packedOutput struct {
	role           string
	exit           int
	stdout, stderr []byte // zstd
}

func encode(smp sample.Sample) (*row, error) {
	smp = clean(smp)
	r := &row{sample: smp}
	for _, part := range []struct {
		column *any
		value  any
		empty  bool
	}{
		{&r.series, smp.Series, len(smp.Series) == 0},
		{&r.hops, smp.Hops, len(smp.Hops) == 0},
		{&r.warnings, smp.Warnings, len(smp.Warnings) == 0},
		{&r.commands, smp.Commands, len(smp.Commands) == 0},
		{&r.gates, smp.Gates, len(smp.Gates) == 0},
		{&r.flags, smp.Flags, len(smp.Flags) == 0},
	} {
		if part.empty {
			continue
		}
		text, err := json.Marshal(part.value)
		if err != nil {
			return nil, err
		}
		*part.column = string(text)
	}
	for _, o := range smp.Outputs {
		r.outputs = append(r.outputs, packedOutput{role: o.Role, exit: o.Exit, stdout: compress(o.Stdout), stderr: compress(o.Stderr)})
	}
	return r, nil
}

func (r *row) insert(tx *sql.Tx, runID string) (id int64, err error) {
	s := &r.sample
	var kind, message, latency any
	if s.Failure != nil {
		kind, message = string(s.Failure.Kind), s.Failure.Message
	}
	if s.Latency != "" {
		latency = s.Latency
	}
	result, err := tx.Exec(`INSERT INTO sample (run_id, scenario, block, position, attempt, started, took_ns,
		failure_kind, failure_message, latency, series_json, hops_json, warnings_json, commands_json, gates_json, flags_json, profiled)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		runID, s.Scenario, s.Block, s.Position, s.Attempt, stamp(s.Started), s.Took.Nanoseconds(),
		kind, message, latency, r.series, r.hops, r.warnings, r.commands, r.gates, r.flags, s.Profiled)
	if err != nil {
		return 0, err
	}
	if id, err = result.LastInsertId(); err != nil {
		return 0, err
	}
	if err := insertMetrics(tx, id, s.Metrics); err != nil {
		return 0, err
	}
	for i, o := range r.outputs {
		if _, err := tx.Exec("INSERT INTO output (sample_id, ordinal, role, exit, stdout_zstd, stderr_zstd) VALUES (?, ?, ?, ?, ?, ?)",
			id, i, o.role, o.exit, o.stdout, o.stderr); err != nil {
			return 0, err
		}
	}
	for _, p := range s.Profiles {
		if _, err := tx.Exec("INSERT INTO profile (sample_id, side, cores, data) VALUES (?, ?, ?, ?)", id, p.Side, p.Cores, p.Data); err != nil {
			return 0, err
		}
	}
	return id, nil
}

func insertMetrics(tx *sql.Tx, id int64, metrics sample.Metrics) error {
	if len(metrics) == 0 {
		return nil
	}
	args := make([]any, 0, 3*len(metrics))
	for m, v := range metrics {
		args = append(args, id, string(m), v)
	}
	_, err := tx.Exec("INSERT INTO metric (sample_id, metric, value) VALUES (?, ?, ?)"+strings.Repeat(", (?, ?, ?)", len(metrics)-1), args...)
	return err
}

// clean leaves out what is not a finite number, for which neither SQL nor JSON
// has a form, and says so in the warnings. The argument's maps and slices stay
// as they are.
func clean(s sample.Sample) sample.Sample {
	var bad []string
	kept := make(sample.Metrics, len(s.Metrics))
	for m, v := range s.Metrics {
		if finite(v) {
			kept[m] = v
		} else {
			bad = append(bad, fmt.Sprintf("%s was %v and is left out", m, v))
		}
	}
	slices.Sort(bad)
	s.Gates, s.Flags = cleanGates(s.Gates), cleanGates(s.Flags)
	points := slices.DeleteFunc(slices.Clone(s.Series), func(p sample.Point) bool {
		return !finite(p.At) || !finite(p.Bits) || !finite(p.SenderCPU) || !finite(p.ReceiverCPU)
	})
	if n := len(s.Series) - len(points); n > 0 {
		bad = append(bad, fmt.Sprintf("%d of %d points of the series were not finite numbers and are left out", n, len(s.Series)))
	}
	if len(bad) > 0 {
		s.Metrics, s.Series = kept, points
		s.Warnings = append(slices.Clone(s.Warnings), bad...)
	}
	return s
}

// cleanGates sets figures to 0 that are not finite; the message still has them.
func cleanGates(gates []sample.Gate) []sample.Gate {
	gates = slices.Clone(gates)
	for i, g := range gates {
		if !finite(g.Value) || !finite(g.Limit) {
			gates[i].Value, gates[i].Limit = 0, 0
		}
	}
	return gates
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
