// Package results stores runs and their samples in one SQLite file. Every report is
// made from this file alone. A sample is stored in one transaction before the next
// trial begins, so a killed run loses at most the current trial.
//
// The tables are simple enough for queries by hand; migrations/ documents them:
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

// Store is an open store. Several goroutines and several processes may use it at
// once. Readers do not wait for a writer, and a writer does not wait for readers.
type Store struct {
	db       *sql.DB
	path     string
	readOnly bool
}

// Options of Open. The zero value opens for reading and writing.
type Options struct {
	// ReadOnly opens an existing store and changes no byte of it. The medium may be
	// read-only.
	ReadOnly bool
	// Wait is the longest wait for another process's write; 10 s if 0.
	Wait time.Duration
}

// Open opens the store at path. It makes a missing store and missing directories. Its
// errors explain the problem with the file or the directory, and the remedy. They
// wrap ErrNotStore, ErrNewer, ErrOlder, ErrReadOnly, ErrDiskFull or an fs error if
// one of these is the cause.
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

// Close ends all use of the store and merges its write-ahead log into the file.
func (s *Store) Close() error {
	if err := s.db.Close(); err != nil {
		return explain(err, "close store", s.path)
	}
	return nil
}

// readyWithin retries ready while another process locks the file. SQLite's busy
// timeout covers writes, but not the change into WAL mode, and not a possible
// deadlock.
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

// ready checks that the file is a store of this version. It makes or migrates the
// store if necessary.
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
			return because(ErrOlder, "open store %s: it has schema %d and must be migrated to %d, but is read-only: open it once with a run, or copy it to a writable directory", s.path, version, len(steps))
		}
		return nil
	}
	// WAL mode lets readers continue while a run writes. The mode is stored in the
	// file, so set it only after the check that the file is a store.
	var mode string
	if err := conn.QueryRowContext(ctx, "PRAGMA journal_mode = WAL").Scan(&mode); err != nil {
		return explain(err, "open store", s.path)
	}
	return migrate(ctx, conn, steps, s.path)
}

// dsn sets synchronous=FULL, which syncs the log at each commit. So a power failure
// loses only the current trial. With a commit every few seconds the cost is small.
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
