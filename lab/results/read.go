package results

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// RunSummary is one line of the list of runs.
type RunSummary struct {
	ID       string        `json:"id"`
	Name     string        `json:"name,omitempty"`
	Note     string        `json:"note,omitempty"`
	Suite    string        `json:"suite"`
	Title    string        `json:"title"`
	Started  time.Time     `json:"started"`
	Finished time.Time     `json:"finished,omitzero"` // zero while the run is in progress, and after a kill
	Status   sample.Status `json:"status"`
	Machine  string        `json:"machine,omitempty"`  // host name; "" if it was not recorded
	Headline string        `json:"headline,omitempty"` // first finding of the report; see SetHeadline
	sample.Form
	Options   sample.Options `json:"-"`
	Scenarios int            `json:"scenarios"` // in the plan; of a matrix, between all pairs of hosts
	Skipped   int            `json:"skipped"`   // number of skipped scenarios
	Samples   int            `json:"samples"`   // number of stored samples, with every attempt
	Failures  int            `json:"failures"`  // number of samples without figures
}

// Runs lists every run, newest first.
func (s *Store) Runs() (list []RunSummary, err error) {
	err = s.read("list the runs of", func(t *tx) error {
		list, err = listRuns(t)
		return err
	})
	return list, err
}

func listRuns(t *tx) ([]RunSummary, error) {
	measured, err := t.dialect.measuring(t)
	if err != nil {
		return nil, err
	}
	list := []RunSummary{}
	err = t.each(`SELECT id, name, note, headline, suite, title, started, finished, status,
		`+t.dialect.scenarios()+`, `+t.dialect.hostname()+`,
		(SELECT count(*) FROM skip WHERE run_id = run.id),
		(SELECT count(*) FROM sample WHERE run_id = run.id),
		(SELECT count(failure_kind) FROM sample WHERE run_id = run.id), coalesce(engine, ''), coalesce(options_json, '{}'),
		CASE WHEN plan_json LIKE '%"matrix":%' THEN plan_json ELSE '' END
		FROM run ORDER BY started DESC, id DESC`, nil, func(rows *sql.Rows) error {
		var r RunSummary
		var started, by, options, matrixPlan string
		var finished sql.NullString
		if err := rows.Scan(&r.ID, &r.Name, &r.Note, &r.Headline, &r.Suite, &r.Title, &started, &finished, &r.Status, &r.Scenarios, &r.Machine, &r.Skipped, &r.Samples, &r.Failures, &by, &options, &matrixPlan); err != nil {
			return err
		}
		r.Scenarios *= pairsOf(matrixPlan)
		if json.Unmarshal([]byte(options), &r.Options) == nil { // of damaged options the list has none
			r.Form = r.Options.Form()
		}
		r.Status = measured.status(r.Status, r.ID, by)
		if r.Started, r.Finished, err = times(started, finished); err != nil {
			return fmt.Errorf("run %s: %w", r.ID, err)
		}
		list = append(list, r)
		return nil
	})
	return list, err
}

// pairsOf returns the number of pairs of hosts in a plan. It returns 1 if the plan has no matrix,
// or if it cannot be decoded.
func pairsOf(planJSON string) int {
	var plan suite.Plan
	if json.Unmarshal([]byte(planJSON), &plan) != nil || plan.Matrix == nil {
		return 1
	}
	return plan.Matrix.Len()
}

// LoadOutputs returns the raw outputs of a sample's processes; nil if it has none.
// sampleID is from AppendSample or from RunData.IDs.
func (s *Store) LoadOutputs(sampleID int64) (list []sample.Output, err error) {
	err = s.read(fmt.Sprintf("load the outputs of sample %d from", sampleID), func(t *tx) error {
		list = nil
		return t.each("SELECT role, exit, stdout_zstd, stderr_zstd FROM output WHERE sample_id = ? ORDER BY ordinal", []any{sampleID}, func(rows *sql.Rows) error {
			var o sample.Output
			var stdout, stderr []byte
			if err := rows.Scan(&o.Role, &o.Exit, &stdout, &stderr); err != nil {
				return err
			}
			var err error
			if o.Stdout, err = decompress(stdout); err == nil {
				o.Stderr, err = decompress(stderr)
			}
			if err != nil {
				return damaged(o.Role, err)
			}
			list = append(list, o)
			return nil
		})
	})
	return list, err
}

// read runs f in one transaction. All queries of f see the same state of the store, also
// if another process writes meanwhile. read calls f again if the connection to a server
// was lost, which happens to each idle connection when the server restarts. It also calls f again
// if f may have seen two states of the store (see dialect.state). It ends with an error if a server
// sends nothing for the time answerWithin.
func (s *Store) read(what string, f func(*tx) error) (err error) {
	ctx, cancel := s.dialect.limit(context.Background(), answerWithin)
	defer cancel()
	for attempt := range 20 {
		time.Sleep(time.Duration(attempt) * 10 * time.Millisecond)
		before := s.dialect.state()
		err = s.readOnce(ctx, what, f)
		switch {
		case s.dialect.state() != before:
			err = errors.Join(err, errChanged)
		case !s.dialect.away(err) || ctx.Err() != nil || attempt >= 4: // do not wait longer for a server
			return err
		}
	}
	if errors.Is(err, errChanged) {
		return s.explain(errChanged, what)
	}
	return err
}

// errChanged is the error for a file that changed while it was read without locks.
var errChanged = errors.New("other processes changed the file during each attempt to read it; try again")

func (s *Store) readOnce(ctx context.Context, what string, f func(*tx) error) error {
	t, err := s.db.BeginTx(ctx, s.dialect.reading())
	if err != nil {
		return s.explain(err, what)
	}
	defer func() { _ = t.Rollback() }() // nothing was written
	if err := f(&tx{t, ctx, s.dialect}); err != nil {
		return s.explain(err, what)
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
