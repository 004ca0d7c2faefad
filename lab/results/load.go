package results

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// RunData has all stored data of one run, except the raw outputs of its tools (see
// LoadOutputs).
type RunData struct {
	Run     sample.Run
	Plan    suite.Plan
	Samples []sample.Sample // in the order in which they were stored
	IDs     []int64         // ID of each sample, in the order of Samples
}

// Load reads a run, which may be still in progress. name is the run's ID, a unique beginning of
// it, or the name that the user gave to one run; NAME@latest is the newest run of a name, and
// "latest" or "" the newest of all. Of a run with very many pairs of hosts
// (suite.Plan.Large) it reads the main metrics, failures and gates of the samples only:
// all data may be larger than the memory.
func (s *Store) Load(name string) (*RunData, error) {
	var data RunData
	err := s.read("load run "+strconv.Quote(name)+" from", func(t *tx) error {
		if err := data.loadHead(t, name); err != nil {
			return err
		}
		if err := data.loadSamples(t); err != nil {
			return err
		}
		if err := data.loadMetrics(t); err != nil {
			return err
		}
		return data.loadProfiles(t)
	})
	if err != nil {
		return nil, err
	}
	return &data, nil
}

// Resolve returns the ID of the run that name stands for (see Load).
func (s *Store) Resolve(name string) (id string, err error) {
	err = s.read("find run "+strconv.Quote(name)+" in", func(t *tx) error {
		id, err = resolve(t, name)
		return err
	})
	return id, err
}

// loadHead starts anew, and loads the run that name stands for, with its plan and its skipped
// scenarios.
func (d *RunData) loadHead(t *tx, name string) error {
	*d = RunData{}
	measured, err := t.dialect.measuring(t)
	if err != nil {
		return err
	}
	id, err := resolve(t, name)
	if err != nil {
		return err
	}
	if err := d.loadRun(t, id, measured); err != nil {
		return err
	}
	return d.loadSkips(t)
}

func (d *RunData) loadRun(t *tx, id string, measured measured) error {
	var started, seed, environment, plan, by, options string
	var finished sql.NullString
	r := &d.Run
	err := t.QueryRow("SELECT id, name, note, suite, title, started, finished, seed, status, environment_json, plan_json, coalesce(engine, ''), coalesce(options_json, '{}') FROM run WHERE id = ?", id).
		Scan(&r.ID, &r.Name, &r.Note, &r.Suite, &r.Title, &started, &finished, &seed, &r.Status, &environment, &plan, &by, &options)
	if err != nil {
		return err
	}
	r.Status = measured.status(r.Status, r.ID, by)
	if r.Started, r.Finished, err = times(started, finished); err != nil {
		return err
	}
	if r.Seed, err = strconv.ParseUint(seed, 10, 64); err != nil {
		return damaged("seed", err)
	}
	if err := json.Unmarshal([]byte(environment), &r.Environment); err != nil {
		return damaged("environment", err)
	}
	if err := json.Unmarshal([]byte(plan), &d.Plan); err != nil {
		return damaged("plan", err)
	}
	if err := json.Unmarshal([]byte(options), &r.Options); err != nil {
		return damaged("options", err)
	}
	if r.Options.Testbed != "" { // earlier versions stored the suite's emulated fabrics
		d.Plan.UseExistingNetwork()
	}
	return nil
}

func (d *RunData) loadSkips(t *tx) error {
	rows, err := t.Query("SELECT scenario, reason FROM skip WHERE run_id = ?", d.Run.ID)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var scenario, reason string
		if err := rows.Scan(&scenario, &reason); err != nil {
			return err
		}
		if d.Run.Skipped == nil {
			d.Run.Skipped = make(map[string]string)
		}
		d.Run.Skipped[scenario] = reason
	}
	return rows.Err()
}

func (d *RunData) loadSamples(t *tx) error {
	details := "latency, series_json, hops_json, warnings_json, commands_json"
	if d.Plan.Large() {
		details = "NULL, NULL, NULL, NULL, NULL"
	}
	rows, err := t.Query("SELECT id, scenario, block, position, attempt, started, took_ns, failure_kind, failure_message, "+
		details+", gates_json, flags_json, profiled, limited_by FROM sample WHERE run_id = ? ORDER BY id", d.Run.ID)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		id, s, err := scanSample(rows)
		if err != nil {
			return err
		}
		d.IDs = append(d.IDs, id)
		d.Samples = append(d.Samples, s)
	}
	return rows.Err()
}

func scanSample(rows *sql.Rows) (id int64, s sample.Sample, err error) {
	var started string
	var kind, message, latency sql.NullString
	var series, hops, warnings, commands, gates, flags sql.RawBytes
	if err := rows.Scan(&id, &s.Scenario, &s.Block, &s.Position, &s.Attempt, &started, &s.Took, &kind, &message,
		&latency, &series, &hops, &warnings, &commands, &gates, &flags, &s.Profiled, &s.Limit); err != nil {
		return id, s, err
	}
	if s.Started, err = time.Parse(stampLayout, started); err != nil {
		return id, s, damaged(fmt.Sprintf("start of sample %d", id), err)
	}
	if kind.Valid {
		s.Failure = &sample.Failure{Kind: sample.FailureKind(kind.String), Message: message.String}
	}
	s.Latency = latency.String
	for _, part := range []struct {
		name string
		text []byte
		into any
	}{{"series", series, &s.Series}, {"hops", hops, &s.Hops}, {"warnings", warnings, &s.Warnings}, {"commands", commands, &s.Commands}, {"gates", gates, &s.Gates}, {"flags", flags, &s.Flags}} {
		if part.text == nil {
			continue
		}
		if err := json.Unmarshal(part.text, part.into); err != nil {
			return id, s, damaged(fmt.Sprintf("%s of sample %d (%s, block %d)", part.name, id, s.Scenario, s.Block), err)
		}
	}
	return id, s, nil
}

// loadMetrics reads the metrics of all samples with one query. Both d.Samples and the
// rows are in the order of the sample IDs.
func (d *RunData) loadMetrics(t *tx) error {
	which := ""
	if d.Plan.Large() {
		which = fmt.Sprintf(" AND metric IN ('%s', '%s')", sample.Throughput, sample.Transactions)
	}
	rows, err := t.Query("SELECT sample_id, metric, value FROM metric WHERE sample_id IN (SELECT id FROM sample WHERE run_id = ?)"+which+" ORDER BY sample_id", d.Run.ID)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	names := make(map[string]sample.Metric) // one string for each name, not one for each row
	i := 0
	for rows.Next() {
		var id int64
		var name sql.RawBytes
		var value float64
		if err := rows.Scan(&id, &name, &value); err != nil {
			return err
		}
		for i < len(d.IDs) && d.IDs[i] < id {
			i++
		}
		if i == len(d.IDs) {
			break
		}
		metric, ok := names[string(name)]
		if !ok {
			metric = sample.Metric(name)
			names[string(metric)] = metric
		}
		if d.Samples[i].Metrics == nil {
			d.Samples[i].Metrics = make(sample.Metrics)
		}
		d.Samples[i].Metrics[metric] = value
	}
	return rows.Err()
}

// loadProfiles reads the profiles of all samples.
func (d *RunData) loadProfiles(t *tx) error {
	rows, err := t.Query(`SELECT sample_id, side, cores, data FROM profile
		WHERE sample_id IN (SELECT id FROM sample WHERE run_id = ?) ORDER BY sample_id, side DESC`, d.Run.ID)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	index := indexes(d.IDs)
	for rows.Next() {
		var id int64
		var p sample.Profile
		if err := rows.Scan(&id, &p.Side, &p.Cores, &p.Data); err != nil {
			return err
		}
		s := &d.Samples[index[id]]
		s.Profiles = append(s.Profiles, p)
	}
	return rows.Err()
}

// indexes returns the index of each ID.
func indexes(ids []int64) map[int64]int {
	index := make(map[int64]int, len(ids))
	for i, id := range ids {
		index[id] = i
	}
	return index
}
