package results

import (
	"database/sql"
	"errors"
	"fmt"
	"strconv"

	"windtunnel/lab/sample"
)

// ErrRunning is why a run that a process measures cannot be deleted.
var ErrRunning = errors.New("the run is being measured")

// DeleteRun removes a run with all that is stored of it, and returns its ID. The
// run is named as for Load, but an empty name is an error. The file keeps its
// size; later runs use the space.
func (s *Store) DeleteRun(name string) (id string, err error) {
	err = s.write("delete run "+strconv.Quote(name)+" from", func(tx *sql.Tx) error {
		if name == "" {
			return fmt.Errorf("give the ID of the run: %w", ErrUnknownRun)
		}
		if id, err = resolve(tx, name); err != nil {
			return err
		}
		var status sample.Status
		var by string
		if err := tx.QueryRow("SELECT status, coalesce(engine, '') FROM run WHERE id = ?", id).Scan(&status, &by); err != nil {
			return err
		}
		if standing(status, by) == sample.Running {
			return fmt.Errorf("wait for the end of run %s, or interrupt it: %w", id, ErrRunning)
		}
		// What refers to the run goes with it (ON DELETE CASCADE).
		_, err := tx.Exec("DELETE FROM run WHERE id = ?", id)
		return err
	})
	return id, err
}
