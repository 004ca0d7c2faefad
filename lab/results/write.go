package results

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// CreateRun stores a new run with its plan, and records that this process measures the
// run. If the store has a run with this ID already, the error wraps ErrTaken.
func (s *Store) CreateRun(run sample.Run, plan suite.Plan) error {
	what := "store run " + run.ID + " in"
	release, err := s.hold(run)
	switch {
	case errors.Is(err, ErrRunning):
		return s.explain(ErrTaken, what)
	case err != nil:
		return s.explain(err, what)
	}
	err = s.write(what, func(t *tx) error { return insertRun(t, run, plan) })
	if err != nil {
		release()
	}
	return err
}

func insertRun(t *tx, run sample.Run, plan suite.Plan) error {
	environment, err := json.Marshal(run.Environment)
	if err != nil {
		return err
	}
	planJSON, err := json.Marshal(plan)
	if err != nil {
		return err
	}
	options, err := json.Marshal(run.Options)
	if err != nil {
		return err
	}
	result, err := t.Exec(`INSERT INTO run (id, name, note, suite, title, started, finished, seed, status, environment_json, plan_json, engine, options_json)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING`,
		run.ID, run.Name, run.Note, run.Suite, run.Title, stamp(run.Started), stampOrNull(run.Finished),
		strconv.FormatUint(run.Seed, 10), string(run.Status), string(environment), string(planJSON), engine(os.Getpid()), string(options))
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		return errors.Join(err, ErrTaken)
	}
	return replaceSkips(t, run)
}

// UpdateRun stores the fields of a run that can change: title, status, finish,
// environment, options, and the skipped scenarios unless run.Skipped is nil. It ignores
// name, note, suite, start, seed and plan. It records that this process measures the run. If another
// process of a shared store measures it, the error wraps ErrRunning.
func (s *Store) UpdateRun(run sample.Run) error {
	what := "update run " + run.ID + " in"
	release, err := s.hold(run)
	if err != nil {
		return s.explain(err, what)
	}
	err = s.insist(what, run.ID, func(t *tx, _ bool) error { return updateRun(t, run) })
	switch {
	case err != nil:
		release()
	case run.Status != sample.Running:
		s.holds.release(run.ID)
	}
	return err
}

func updateRun(t *tx, run sample.Run) error {
	environment, err := json.Marshal(run.Environment)
	if err != nil {
		return err
	}
	options, err := json.Marshal(run.Options)
	if err != nil {
		return err
	}
	result, err := t.Exec("UPDATE run SET title = ?, finished = ?, status = ?, environment_json = ?, engine = ?, options_json = ? WHERE id = ?",
		run.Title, stampOrNull(run.Finished), string(run.Status), string(environment), engine(os.Getpid()), string(options), run.ID)
	if err != nil {
		return err
	}
	switch n, err := result.RowsAffected(); {
	case err != nil:
		return err
	case n == 0:
		return unknownRun(t, run.ID)
	case run.Skipped == nil:
		return nil
	}
	return replaceSkips(t, run)
}

// SetHeadline stores the first finding of a run's report, which lists of runs show.
func (s *Store) SetHeadline(runID, text string) error {
	return s.write("store the headline of run "+runID+" in", func(t *tx) error {
		if err := mustExist(t, runID); err != nil {
			return err
		}
		_, err := t.Exec("UPDATE run SET headline = ? WHERE id = ?", text, runID)
		return err
	})
}

// AppendSample stores a sample with its raw outputs and returns its ID. After an error
// nothing of the sample is stored, unless a server did not answer the commit. After success the sample survives a kill and a power
// failure. AppendSample omits metrics and points of the series that are not finite
// numbers, and adds a warning to the stored sample. While a server does not answer, it
// tries again, and stores the sample once.
func (s *Store) AppendSample(runID string, smp sample.Sample) (id int64, err error) {
	row, err := encode(smp)
	if err != nil {
		return 0, fmt.Errorf("store a sample of %s in %s: %w", smp.Scenario, s.place, err)
	}
	err = s.insist(fmt.Sprintf("store block %d of %s in", smp.Block, smp.Scenario), runID, func(t *tx, again bool) error {
		if err := mustExist(t, runID); err != nil {
			return err
		}
		if again {
			if id, err = row.stored(t, runID); err != nil || id != 0 {
				return err
			}
		}
		id, err = row.insert(t, runID)
		return err
	})
	return id, err
}

// write runs f in one transaction. After an error nothing is stored. what is the
// operation, for errors.
func (s *Store) write(what string, f func(*tx) error) error {
	ctx, cancel := s.dialect.limit(context.Background(), answerWithin)
	defer cancel()
	return s.writeWithin(ctx, what, f)
}

// writeWithin is write with a context that ends the transaction.
func (s *Store) writeWithin(ctx context.Context, what string, f func(*tx) error) error {
	if s.readOnly {
		return withCause(ErrReadOnly, "%s %s: the store was opened for reading only", what, s.place)
	}
	t, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return s.explain(err, what)
	}
	if err := f(&tx{t, ctx, s.dialect}); err != nil {
		_ = t.Rollback() // report the error of f instead
		return s.explain(err, what)
	}
	if err := t.Commit(); err != nil {
		return s.explain(err, what)
	}
	return nil
}

func replaceSkips(t *tx, run sample.Run) error {
	if _, err := t.Exec("DELETE FROM skip WHERE run_id = ?", run.ID); err != nil {
		return err
	}
	for scenario, reason := range run.Skipped {
		if _, err := t.Exec("INSERT INTO skip (run_id, scenario, reason) VALUES (?, ?, ?)", run.ID, scenario, reason); err != nil {
			return err
		}
	}
	return nil
}

// stampLayout has a fixed width, so that text order is time order.
const stampLayout = "2006-01-02T15:04:05.000000000Z"

func stamp(t time.Time) string { return t.UTC().Format(stampLayout) }

func stampOrNull(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return stamp(t)
}

// ErrRunning is the error for deleting a run that is still being measured.
var ErrRunning = errors.New("the run is being measured")

// DeleteRun deletes a run with its samples and everything else that refers to
// it, and returns its ID. name is as for Load, but must not be empty. A SQLite
// file keeps its size; later runs use the space.
func (s *Store) DeleteRun(name string) (id string, err error) {
	ctx, cancel := s.dialect.limit(context.Background(), deleteWithin)
	defer cancel()
	err = s.writeWithin(ctx, "delete run "+strconv.Quote(name)+" from", func(t *tx) error {
		if name == "" {
			return withCause(ErrUnknownRun, "the name is empty; give the ID of the run")
		}
		if id, err = resolve(t, name); err != nil {
			return err
		}
		var status sample.Status
		var by string
		if err := t.QueryRow("SELECT status, coalesce(engine, '') FROM run WHERE id = ?"+t.dialect.lockRow(), id).Scan(&status, &by); err != nil {
			return err
		}
		measured, err := t.dialect.measuring(t)
		if err != nil {
			return err
		}
		if measured.status(status, id, by) == sample.Running {
			return withCause(ErrRunning, "run %s is being measured; wait for its end, or interrupt it", id)
		}
		// ON DELETE CASCADE deletes the rows that refer to the run.
		_, err = t.Exec("DELETE FROM run WHERE id = ?", id)
		return err
	})
	return id, err
}
