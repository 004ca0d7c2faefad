package results

import (
	"context"
	"errors"
	"strconv"

	"windtunnel/lab/sample"
)

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
