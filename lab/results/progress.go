package results

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"windtunnel/lab/sample"
)

// Progress is the state of a run, with the samples that a reader does not have yet.
type Progress struct {
	Status   sample.Status
	Finished time.Time // zero while the run is in progress, and after a kill
	// Samples are in the order in which they were stored. They have no series, hops,
	// latency histograms, warnings, commands, outputs and profiles.
	Samples []sample.Sample
	IDs     []int64 // ID of each sample
}

// Progress reads the state of the run with this ID, and the samples that were stored
// after the sample with the ID after; 0 is every sample. The samples have the given
// metrics only. It takes a small part of Load's time, so a reader can call it often while
// the run is in progress.
func (s *Store) Progress(runID string, after int64, metrics ...sample.Metric) (*Progress, error) {
	var p Progress
	err := s.read("read the progress of run "+strconv.Quote(runID)+" in", func(t *tx) error {
		p = Progress{}
		if err := p.loadState(t, runID); err != nil {
			return err
		}
		if err := p.loadSamples(t, runID, after); err != nil || len(p.IDs) == 0 || len(metrics) == 0 {
			return err
		}
		return p.loadMetrics(t, runID, after, metrics)
	})
	if err != nil {
		return nil, err
	}
	return &p, nil
}

// Head reads a run and its plan without samples. name is as in Load.
func (s *Store) Head(name string) (*RunData, error) {
	var data RunData
	err := s.read("read run "+strconv.Quote(name)+" in", func(t *tx) error { return data.loadHead(t, name) })
	if err != nil {
		return nil, err
	}
	return &data, nil
}

func (p *Progress) loadState(t *tx, runID string) error {
	var started, by string
	var finished sql.NullString
	measured, err := t.dialect.measuring(t)
	if err != nil {
		return err
	}
	err = t.QueryRow("SELECT status, started, finished, coalesce(engine, '') FROM run WHERE id = ?", runID).Scan(&p.Status, &started, &finished, &by)
	if errors.Is(err, sql.ErrNoRows) {
		return unknownRun(t, runID)
	}
	if err != nil {
		return err
	}
	p.Status = measured.status(p.Status, runID, by)
	_, p.Finished, err = times(started, finished)
	return err
}

// loadSamples reads the samples. The sign before id makes SQLite find them by the run and
// not by the ID: the rows of other runs can be many and large.
func (p *Progress) loadSamples(t *tx, runID string, after int64) error {
	rows, err := t.Query(`SELECT id, scenario, block, position, attempt, started, took_ns, failure_kind, failure_message,
		gates_json, flags_json, profiled, limited_by FROM sample WHERE run_id = ? AND +id > ? ORDER BY +id`, runID, after)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var id int64
		var s sample.Sample
		var started string
		var kind, message sql.NullString
		var gates, flags sql.RawBytes
		if err := rows.Scan(&id, &s.Scenario, &s.Block, &s.Position, &s.Attempt, &started, &s.Took, &kind, &message, &gates, &flags, &s.Profiled, &s.Limit); err != nil {
			return err
		}
		if s.Started, err = time.Parse(stampLayout, started); err != nil {
			return damaged(fmt.Sprintf("start of sample %d", id), err)
		}
		if kind.Valid {
			s.Failure = &sample.Failure{Kind: sample.FailureKind(kind.String), Message: message.String}
		}
		for text, into := range map[*sql.RawBytes]*[]sample.Gate{&gates: &s.Gates, &flags: &s.Flags} {
			if *text == nil {
				continue
			}
			if err := json.Unmarshal(*text, into); err != nil {
				return damaged(fmt.Sprintf("checks of sample %d (%s, block %d)", id, s.Scenario, s.Block), err)
			}
		}
		p.IDs, p.Samples = append(p.IDs, id), append(p.Samples, s)
	}
	return rows.Err()
}

func (p *Progress) loadMetrics(t *tx, runID string, after int64, metrics []sample.Metric) error {
	args := []any{runID, after}
	for _, m := range metrics {
		args = append(args, string(m))
	}
	rows, err := t.Query(`SELECT sample_id, metric, value FROM metric WHERE sample_id IN (SELECT id FROM sample WHERE run_id = ? AND +id > ?)
		AND metric IN (?`+strings.Repeat(", ?", len(metrics)-1)+")", args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	index := indexes(p.IDs)
	for rows.Next() {
		var id int64
		var name sample.Metric
		var value float64
		if err := rows.Scan(&id, &name, &value); err != nil {
			return err
		}
		s := &p.Samples[index[id]]
		if s.Metrics == nil {
			s.Metrics = make(sample.Metrics)
		}
		s.Metrics.Set(name, value)
	}
	return rows.Err()
}
