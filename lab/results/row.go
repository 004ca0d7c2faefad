package results

import (
	"database/sql"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"windtunnel/lab/sample"
)

// row is a sample in the form of the database tables. encode makes it before the
// transaction begins, so that the transaction is short.
type row struct {
	sample                                         sample.Sample
	series, hops, warnings, commands, gates, flags any // JSON text; nil if empty
	outputs                                        []packedOutput
}

type packedOutput struct {
	role           string
	exit           int
	stdout, stderr []byte // zstd
}

func encode(smp sample.Sample) (*row, error) {
	smp, left := smp.Clean()
	smp.Warnings = append(slices.Clone(smp.Warnings), left...)
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

func (r *row) insert(t *tx, runID string) (id int64, err error) {
	s := &r.sample
	var kind, message, latency any
	if s.Failure != nil {
		kind, message = string(s.Failure.Kind), s.Failure.Message
	}
	if s.Latency != "" {
		latency = s.Latency
	}
	err = t.QueryRow(`INSERT INTO sample (run_id, scenario, block, position, attempt, started, took_ns,
		failure_kind, failure_message, latency, series_json, hops_json, warnings_json, commands_json, gates_json, flags_json, profiled, limited_by)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
		runID, s.Scenario, s.Block, s.Position, s.Attempt, stamp(s.Started), s.Took.Nanoseconds(),
		kind, message, latency, r.series, r.hops, r.warnings, r.commands, r.gates, r.flags, s.Profiled, string(s.Limit)).Scan(&id)
	if err != nil {
		return 0, err
	}
	if err := insertMetrics(t, id, s.Metrics); err != nil {
		return 0, err
	}
	for i, o := range r.outputs {
		if _, err := t.Exec("INSERT INTO output (sample_id, ordinal, role, exit, stdout_zstd, stderr_zstd) VALUES (?, ?, ?, ?, ?, ?)",
			id, i, o.role, o.exit, o.stdout, o.stderr); err != nil {
			return 0, err
		}
	}
	for _, p := range s.Profiles {
		if _, err := t.Exec("INSERT INTO profile (sample_id, side, cores, data) VALUES (?, ?, ?, ?)", id, p.Side, p.Cores, p.Data); err != nil {
			return 0, err
		}
	}
	return id, nil
}

// stored returns the ID of the sample if an earlier attempt stored it; otherwise 0. No two
// samples of a run have the same trial, attempt and start.
func (r *row) stored(t *tx, runID string) (id int64, err error) {
	s := &r.sample
	err = t.QueryRow("SELECT id FROM sample WHERE run_id = ? AND scenario = ? AND block = ? AND attempt = ? AND profiled = ? AND started = ?",
		runID, s.Scenario, s.Block, s.Attempt, s.Profiled, stamp(s.Started)).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return id, err
}

func insertMetrics(t *tx, id int64, metrics sample.Metrics) error {
	if len(metrics) == 0 {
		return nil
	}
	args := make([]any, 0, 3*len(metrics))
	for m, v := range metrics {
		args = append(args, id, string(m), v)
	}
	_, err := t.Exec("INSERT INTO metric (sample_id, metric, value) VALUES (?, ?, ?)"+strings.Repeat(", (?, ?, ?)", len(metrics)-1), args...)
	return err
}
