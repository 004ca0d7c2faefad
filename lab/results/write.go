package results

import (
	"context"
	"database/sql"
	"encoding/json"
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
	return s.write("store run "+run.ID+" in", func(tx *sql.Tx) error {
		environment, err := json.Marshal(run.Environment)
		if err != nil {
			return err
		}
		planJSON, err := json.Marshal(plan)
		if err != nil {
			return err
		}
		var taken bool
		if err := tx.QueryRow("SELECT EXISTS (SELECT 1 FROM run WHERE id = ?)", run.ID).Scan(&taken); err != nil {
			return err
		}
		if taken {
			return ErrTaken
		}
		options, err := json.Marshal(run.Options)
		if err != nil {
			return err
		}
		_, err = tx.Exec(`INSERT INTO run (id, suite, title, started, finished, seed, status, environment_json, plan_json, engine, options_json)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			run.ID, run.Suite, run.Title, stamp(run.Started), stampOrNull(run.Finished),
			strconv.FormatUint(run.Seed, 10), string(run.Status), string(environment), string(planJSON), engine(os.Getpid()), string(options))
		if err != nil {
			return err
		}
		return replaceSkips(tx, run)
	})
}

// UpdateRun stores the fields of a run that can change: title, status, finish,
// environment, options, and the skipped scenarios unless run.Skipped is nil. It ignores
// suite, start, seed and plan. It records that this process measures the run.
func (s *Store) UpdateRun(run sample.Run) error {
	return s.write("update run "+run.ID+" in", func(tx *sql.Tx) error {
		environment, err := json.Marshal(run.Environment)
		if err != nil {
			return err
		}
		options, err := json.Marshal(run.Options)
		if err != nil {
			return err
		}
		result, err := tx.Exec("UPDATE run SET title = ?, finished = ?, status = ?, environment_json = ?, engine = ?, options_json = ? WHERE id = ?",
			run.Title, stampOrNull(run.Finished), string(run.Status), string(environment), engine(os.Getpid()), string(options), run.ID)
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); err != nil || n == 0 {
			return unknownRun(tx, run.ID, err)
		}
		if run.Skipped == nil {
			return nil
		}
		return replaceSkips(tx, run)
	})
}

// SkipScenario stores the reason why a scenario of the run cannot run here.
func (s *Store) SkipScenario(runID, scenario, reason string) error {
	return s.write("store a skipped scenario of run "+runID+" in", func(tx *sql.Tx) error {
		if err := mustExist(tx, runID); err != nil {
			return err
		}
		_, err := tx.Exec("INSERT INTO skip (run_id, scenario, reason) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET reason = excluded.reason", runID, scenario, reason)
		return err
	})
}

// AppendSample stores a sample with its raw outputs and returns its ID. After an error
// nothing of the sample is stored. After success the sample survives a kill and a power
// failure. AppendSample omits metrics and points of the series that are not finite
// numbers, and adds a warning to the stored sample.
func (s *Store) AppendSample(runID string, smp sample.Sample) (id int64, err error) {
	row, err := encode(smp)
	if err != nil {
		return 0, fmt.Errorf("store a sample of %s in %s: %w", smp.Scenario, s.path, err)
	}
	err = s.write(fmt.Sprintf("store block %d of %s in", smp.Block, smp.Scenario), func(tx *sql.Tx) error {
		if err := mustExist(tx, runID); err != nil {
			return err
		}
		id, err = row.insert(tx, runID)
		return err
	})
	return id, err
}

// write runs f in one transaction. After an error nothing is stored. what is the
// operation, for errors.
func (s *Store) write(what string, f func(*sql.Tx) error) error {
	if s.readOnly {
		return withCause(ErrReadOnly, "%s %s: the store was opened for reading only", what, s.path)
	}
	tx, err := s.db.BeginTx(context.Background(), nil)
	if err != nil {
		return explain(err, what, s.path)
	}
	if err := f(tx); err != nil {
		_ = tx.Rollback() // report the error of f instead
		return explain(err, what, s.path)
	}
	if err := tx.Commit(); err != nil {
		return explain(err, what, s.path)
	}
	return nil
}

func replaceSkips(tx *sql.Tx, run sample.Run) error {
	if _, err := tx.Exec("DELETE FROM skip WHERE run_id = ?", run.ID); err != nil {
		return err
	}
	for scenario, reason := range run.Skipped {
		if _, err := tx.Exec("INSERT INTO skip (run_id, scenario, reason) VALUES (?, ?, ?)", run.ID, scenario, reason); err != nil {
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
