package results

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
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
		of, metrics := rowsOf{"run_id = ?", []any{data.Run.ID}}, []sample.Metric(nil)
		if data.Plan.Large() {
			metrics = []sample.Metric{sample.Throughput, sample.Transactions}
		}
		var err error
		if data.IDs, data.Samples, err = of.samples(t, "id", !data.Plan.Large()); err != nil {
			return err
		}
		if err := of.metrics(t, metrics, data.IDs, data.Samples); err != nil {
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
	return t.each("SELECT scenario, reason FROM skip WHERE run_id = ?", []any{d.Run.ID}, func(rows *sql.Rows) error {
		var scenario, reason string
		if err := rows.Scan(&scenario, &reason); err != nil {
			return err
		}
		if d.Run.Skipped == nil {
			d.Run.Skipped = make(map[string]string)
		}
		d.Run.Skipped[scenario] = reason
		return nil
	})
}

// rowsOf is the condition for rows of the table sample, with its parameters.
type rowsOf struct {
	where string
	args  []any
}

// samples reads the samples in the order of an expression. Their metrics and profiles are not read.
// Without details it omits what can be large: series, hops, latency histograms, warnings and commands.
func (of rowsOf) samples(t *tx, order string, details bool) (ids []int64, list []sample.Sample, err error) {
	columns := "latency, series_json, hops_json, warnings_json, commands_json"
	if !details {
		columns = "NULL, NULL, NULL, NULL, NULL"
	}
	err = t.each("SELECT id, scenario, block, position, attempt, started, took_ns, failure_kind, failure_message, "+
		columns+", gates_json, flags_json, profiled, limited_by FROM sample WHERE "+of.where+" ORDER BY "+order, of.args, func(rows *sql.Rows) error {
		id, s, err := scanSample(rows)
		ids, list = append(ids, id), append(list, s)
		return err
	})
	return ids, list, err
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

// metrics reads the metrics of the samples with one query; wanted nil: all of them.
func (of rowsOf) metrics(t *tx, wanted []sample.Metric, ids []int64, samples []sample.Sample) error {
	which, args := "", slices.Clone(of.args)
	if wanted != nil {
		which = " AND metric IN (?" + strings.Repeat(", ?", len(wanted)-1) + ")"
	}
	for _, m := range wanted {
		args = append(args, string(m))
	}
	index := indexes(ids)
	names := make(map[string]sample.Metric) // one string for each name, not one for each row
	return t.each("SELECT sample_id, metric, value FROM metric WHERE sample_id IN (SELECT id FROM sample WHERE "+of.where+")"+which, args, func(rows *sql.Rows) error {
		var id int64
		var name sql.RawBytes
		var value float64
		if err := rows.Scan(&id, &name, &value); err != nil {
			return err
		}
		metric, ok := names[string(name)]
		if !ok {
			metric = sample.Metric(name)
			names[string(metric)] = metric
		}
		i, ok := index[id]
		if !ok { // the file without locks changed meanwhile; it is read again
			return nil
		}
		if samples[i].Metrics == nil {
			samples[i].Metrics = make(sample.Metrics)
		}
		samples[i].Metrics[metric] = value
		return nil
	})
}

// loadProfiles reads the profiles of all samples.
func (d *RunData) loadProfiles(t *tx) error {
	index := indexes(d.IDs)
	return t.each(`SELECT sample_id, side, cores, data FROM profile
		WHERE sample_id IN (SELECT id FROM sample WHERE run_id = ?) ORDER BY sample_id, side DESC`, []any{d.Run.ID}, func(rows *sql.Rows) error {
		var id int64
		var p sample.Profile
		if err := rows.Scan(&id, &p.Side, &p.Cores, &p.Data); err != nil {
			return err
		}
		s := &d.Samples[index[id]]
		s.Profiles = append(s.Profiles, p)
		return nil
	})
}

// indexes returns the index of each ID.
func indexes(ids []int64) map[int64]int {
	index := make(map[int64]int, len(ids))
	for i, id := range ids {
		index[id] = i
	}
	return index
}
