package results

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"windtunnel/lab/sample"
)

// RunSummary is one line of the list of runs.
type RunSummary struct {
	ID        string
	Suite     string
	Title     string
	Started   time.Time
	Finished  time.Time // zero while the run is in progress, and after a kill
	Status    sample.Status
	Scenarios int // in the plan
	Skipped   int // number of skipped scenarios
	Samples   int // number of stored samples, with every attempt
	Failures  int // number of samples without figures
}

// Runs lists every run, newest first.
func (s *Store) Runs() ([]RunSummary, error) {
	rows, err := s.db.Query(`SELECT id, suite, title, started, finished, status,
		CASE WHEN json_valid(plan_json) THEN coalesce(json_array_length(plan_json, '$.scenarios'), 0) ELSE 0 END,
		(SELECT count(*) FROM skip WHERE run_id = run.id),
		(SELECT count(*) FROM sample WHERE run_id = run.id),
		(SELECT count(failure_kind) FROM sample WHERE run_id = run.id), coalesce(engine, '')
		FROM run ORDER BY started DESC, id DESC`)
	if err != nil {
		return nil, explain(err, "list the runs of", s.path)
	}
	defer func() { _ = rows.Close() }()
	var list []RunSummary
	for rows.Next() {
		var r RunSummary
		var started, by string
		var finished sql.NullString
		if err := rows.Scan(&r.ID, &r.Suite, &r.Title, &started, &finished, &r.Status, &r.Scenarios, &r.Skipped, &r.Samples, &r.Failures, &by); err != nil {
			return nil, explain(err, "list the runs of", s.path)
		}
		r.Status = actualStatus(r.Status, by)
		if r.Started, r.Finished, err = times(started, finished); err != nil {
			return nil, fmt.Errorf("list the runs of %s: run %s: %w", s.path, r.ID, err)
		}
		list = append(list, r)
	}
	if err := rows.Err(); err != nil {
		return nil, explain(err, "list the runs of", s.path)
	}
	return list, nil
}

// LoadOutputs returns the raw outputs of a sample's processes; nil if it has none.
// sampleID is from AppendSample or from RunData.IDs.
func (s *Store) LoadOutputs(sampleID int64) ([]sample.Output, error) {
	what := fmt.Sprintf("load the outputs of sample %d from", sampleID)
	rows, err := s.db.Query("SELECT role, exit, stdout_zstd, stderr_zstd FROM output WHERE sample_id = ? ORDER BY ordinal", sampleID)
	if err != nil {
		return nil, explain(err, what, s.path)
	}
	defer func() { _ = rows.Close() }()
	var list []sample.Output
	for rows.Next() {
		var o sample.Output
		var stdout, stderr []byte
		if err := rows.Scan(&o.Role, &o.Exit, &stdout, &stderr); err != nil {
			return nil, explain(err, what, s.path)
		}
		if o.Stdout, err = decompress(stdout); err == nil {
			o.Stderr, err = decompress(stderr)
		}
		if err != nil {
			return nil, damaged(what+" "+s.path+": "+o.Role, err)
		}
		list = append(list, o)
	}
	if err := rows.Err(); err != nil {
		return nil, explain(err, what, s.path)
	}
	return list, nil
}

// read runs f in one transaction. All queries of f see the same state of the store, also
// if another process writes meanwhile.
func (s *Store) read(what string, f func(*sql.Tx) error) error {
	tx, err := s.db.BeginTx(context.Background(), &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return explain(err, what, s.path)
	}
	defer func() { _ = tx.Rollback() }() // nothing was written
	if err := f(tx); err != nil {
		return explain(err, what, s.path)
	}
	return nil
}

func times(started string, finished sql.NullString) (from, to time.Time, err error) {
	if from, err = time.Parse(stampLayout, started); err != nil {
		return from, to, damaged("start", err)
	}
	if finished.Valid {
		if to, err = time.Parse(stampLayout, finished.String); err != nil {
			return from, to, damaged("finish", err)
		}
	}
	return from, to, nil
}

func damaged(what string, err error) error {
	return fmt.Errorf("%s cannot be read: %w: %w", what, ErrCorrupt, err)
}
