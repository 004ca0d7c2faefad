// Package results keeps runs and their samples in one SQLite file, from which
// alone every report is made. A sample is stored in one transaction before the
// next trial begins, so a killed run loses at most the trial in flight.
//
// The tables are plain enough to query by hand; migrations/ documents them:
//
//	SELECT scenario, block, value / 1e9 AS gbit FROM sample
//	JOIN metric ON sample_id = sample.id WHERE metric = 'throughput_bps';
package results

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"path/filepath"
	"time"

	_ "modernc.org/sqlite" // registers the driver
)

// Store is an open store. It may be used by several goroutines, and by several
// processes at once: readers do not wait for a writer, nor it for them.
type Store struct {
	db       *sql.DB
	path     string
	readOnly bool
}

// Options of Open. The zero value opens for reading and writing.
type Options struct {
	// ReadOnly opens an existing store without changing a byte of it, also on
	// a medium that cannot be written.
	ReadOnly bool
	// Wait is how long a write waits for another process's write; 10 s where 0.
	Wait time.Duration
}

// Open opens the store at path, or makes it, with the directories above it.
// Its errors say what is wrong with the file or its place, and the remedy; they
// wrap ErrNotStore, ErrNewer, ErrOlder, ErrReadOnly, ErrDiskFull or an fs error where one
// of these is the cause.
func Open(path string, opts Options) (*Store, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w", path, err)
	}
	if err := prepare(abs, opts.ReadOnly); err != nil {
		return nil, err
	}
	dsn, err := dsn(abs, opts)
	if err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, explain(err, "open store", abs)
	}
	s := &Store{db: db, path: abs, readOnly: opts.ReadOnly}
	if err := s.readyWithin(opts.wait()); err != nil {
		_ = db.Close()
		return nil, err
	}
	return s, nil
}

func (o Options) wait() time.Duration {
	if o.Wait == 0 {
		return 10 * time.Second
	}
	return o.Wait
}

// Path returns the absolute path of the store's file.
func (s *Store) Path() string { return s.path }

// Close ends all use of the store and folds its write-ahead log into the file.
func (s *Store) Close() error {
	if err := s.db.Close(); err != nil {
		return explain(err, "close store", s.path)
	}
	return nil
}

// readyWithin tries ready again while another process holds the file: SQLite
// asks its busy timeout for a write, but not for the change into WAL mode, nor
// where waiting could be for one that waits in turn.
func (s *Store) readyWithin(wait time.Duration) error {
	deadline := time.Now().Add(wait)
	for {
		err := s.ready()
		if !isBusy(err) || time.Now().After(deadline) {
			return err
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// ready checks that the file is a store of this version, or makes it one.
func (s *Store) ready() error {
	ctx := context.Background()
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return explain(err, "open store", s.path)
	}
	defer func() { _ = conn.Close() }() // returns it to the pool
	steps, err := embedded()
	if err != nil {
		return err
	}
	version, err := check(ctx, conn, steps, s.path)
	if err != nil {
		return err
	}
	if s.readOnly {
		if version < len(steps) {
			return because(ErrOlder, "open store %s: it has schema %d and must be brought to %d, which needs it to be writable: open it once with a run, or copy it to a place that can be written", s.path, version, len(steps))
		}
		return nil
	}
	// Readers go on while a run writes. The mode stays with the file, so it is
	// set only after the file proved to be a store.
	var mode string
	if err := conn.QueryRowContext(ctx, "PRAGMA journal_mode = WAL").Scan(&mode); err != nil {
		return explain(err, "open store", s.path)
	}
	return migrate(ctx, conn, steps, s.path)
}

// dsn: synchronous FULL syncs the log at each commit, so that even a power cut
// costs only the trial in flight; at a commit every few seconds it is cheap.
func dsn(path string, opts Options) (string, error) {
	q := url.Values{}
	q.Set("_busy_timeout", fmt.Sprint(opts.wait().Milliseconds()))
	q.Set("_foreign_keys", "1")
	q.Set("_synchronous", "FULL")
	q.Set("_txlock", "immediate")
	q.Set("_error_rc", "1")
	if opts.ReadOnly {
		q.Set("mode", "ro")
		frozen, err := unwritable(path)
		if err != nil {
			return "", err
		}
		if frozen {
			q.Set("immutable", "1")
		}
	}
	return (&url.URL{Scheme: "file", Path: path, RawQuery: q.Encode()}).String(), nil
}
