// Package results stores runs and their samples in one SQLite file. Every report is
// made from this file alone. A sample is stored in one transaction before the next
// trial begins, so a killed run loses at most the current trial.
//
// migrations/ documents the tables, for queries such as this one:
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
	// ReadOnly opens an existing store and changes no byte of it. The file system may
	// be read-only.
	ReadOnly bool
	// Wait is the longest time to wait until another process has finished its write;
	// 0 means 10 s.
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

// readyWithin calls ready again and again while another process locks the file, until
// the time is over. SQLite's busy timeout is not enough: it does not cover the change to
// WAL mode, and SQLite does not wait if waiting could cause a deadlock.
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

// ready checks that the file is a store. It migrates a store of an older version, and
// makes a store in an empty file, unless the store is read-only.
func (s *Store) ready() error {
	ctx := context.Background()
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return explain(err, "open store", s.path)
	}
	defer func() { _ = conn.Close() }() // returns it to the pool
	steps, err := readMigrations()
	if err != nil {
		return err
	}
	version, err := check(ctx, conn, steps, s.path)
	if err != nil {
		return err
	}
	if s.readOnly {
		if version < len(steps) {
			return withCause(ErrOlder, "open store %s: it has schema %d and must be migrated to %d, which needs write access; make the file writable, or copy it to a writable directory", s.path, version, len(steps))
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

// dsn returns the data source name of the store, with its options. With synchronous=FULL
// SQLite syncs the log at each commit, so a power failure loses only the current trial.
// A run commits every few seconds, so the cost is small.
func dsn(path string, opts Options) (string, error) {
	q := url.Values{}
	q.Set("_busy_timeout", fmt.Sprint(opts.wait().Milliseconds()))
	q.Set("_foreign_keys", "1")
	q.Set("_synchronous", "FULL")
	q.Set("_txlock", "immediate")
	q.Set("_error_rc", "1")
	if opts.ReadOnly {
		q.Set("mode", "ro")
		frozen, err := readOnlyDir(path)
		if err != nil {
			return "", err
		}
		if frozen {
			q.Set("immutable", "1")
		}
	}
	return (&url.URL{Scheme: "file", Path: path, RawQuery: q.Encode()}).String(), nil
}
