package results

import (
	"database/sql"
	"errors"
	"strconv"
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
		// The sign before id makes SQLite find the samples by the run and not by the ID: the rows of
		// other runs can be many and large.
		of := rowsOf{"run_id = ? AND +id > ?", []any{runID, after}}
		var err error
		if p.IDs, p.Samples, err = of.samples(t, "+id", false); err != nil || len(p.IDs) == 0 || len(metrics) == 0 {
			return err
		}
		return of.metrics(t, metrics, p.IDs, p.Samples)
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
