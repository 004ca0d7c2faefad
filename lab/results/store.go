// Package results stores runs and their samples in one SQLite file, or in a database of
// PostgreSQL that several machines share. Every report is made from this store alone. A
// sample is stored in one transaction before the next trial begins, so a killed run loses
// at most the current trial.
//
// migrations/ documents the tables, for queries such as this one:
//
//	SELECT scenario, block, value / 1e9 AS gbit FROM sample
//	JOIN metric ON sample_id = sample.id WHERE metric = 'throughput_bps';
package results

import (
	"context"
	"database/sql"
	"time"
)

// Store is an open store. Several goroutines and several processes may use it at
// once. Readers do not wait for a writer, and a writer does not wait for readers.
type Store struct {
	db       *sql.DB
	dialect  dialect
	place    string // a path, or a URL without its password
	readOnly bool
	holds    *holds // of the runs that this process measures; nil in SQLite
	outage   outage
}

// Options of Open. The zero value opens for reading and writing.
type Options struct {
	// ReadOnly opens an existing store and changes no byte of it. The file system may
	// be read-only, and the user need not have the right to write the directory.
	ReadOnly bool
	// Wait is the longest time to wait until another process has finished its write, and
	// until a server accepts a connection; 0 means 10 s.
	Wait time.Duration
	// Outage is the longest time for which a write waits for a server that does not answer;
	// 0 means 5 min. SQLite has no server.
	Outage time.Duration
}

// Open opens the store at place: the path of a SQLite file, or the URL of a PostgreSQL
// database (postgres://user@host/database). It makes a missing file, missing directories
// and missing tables, but no database of a server. Its errors explain the problem with the
// place, and the remedy. They wrap ErrNotStore, ErrNewer, ErrOlder, ErrReadOnly,
// ErrDiskFull or an fs error if one of these is the cause.
func Open(place string, opts Options) (*Store, error) {
	s, err := connect(place, opts)
	if err != nil {
		return nil, err
	}
	if err := s.readyWithin(opts.wait()); err != nil {
		_ = s.db.Close()
		return nil, err
	}
	return s, nil
}

// connect returns the store at place, without a look at its schema.
func connect(place string, opts Options) (*Store, error) {
	if scheme := urlScheme(place); scheme != "" {
		return openPostgres(place, scheme, opts)
	}
	return openSQLite(place, opts)
}

func (o Options) wait() time.Duration {
	if o.Wait == 0 {
		return 10 * time.Second
	}
	return o.Wait
}

// Path returns the absolute path of the store's file, or the URL of the database without
// its password.
func (s *Store) Path() string { return s.place }

// Close ends all use of the store. A run that this process measures counts as stopped. The
// write-ahead log of a SQLite file is merged into the file.
func (s *Store) Close() error {
	s.holds.close()
	if err := s.db.Close(); err != nil {
		return s.explain(err, "close store")
	}
	return nil
}

func (s *Store) explain(err error, what string) error { return s.dialect.explain(err, what) }

// readyWithin calls ready again and again while another process locks the file, until
// the time is over. SQLite's busy timeout is not enough: it does not cover the change to
// WAL mode, and SQLite does not wait if waiting could cause a deadlock.
func (s *Store) readyWithin(wait time.Duration) error {
	deadline := time.Now().Add(wait)
	for {
		before := s.dialect.state()
		err := s.ready()
		again := isBusy(err) || s.readOnly && unsettled(err) || s.dialect.state() != before
		if !again || time.Now().After(deadline) {
			return err
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// ready checks that the database is a store. It migrates a store of an older version, and
// makes a store in an empty database, unless the store is read-only.
func (s *Store) ready() error {
	ctx, cancel := s.dialect.limit(context.Background(), answerWithin)
	defer cancel()
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return s.explain(err, "open store")
	}
	defer func() { _ = conn.Close() }() // returns it to the pool
	steps, err := readMigrations()
	if err != nil {
		return err
	}
	version, err := s.dialect.check(ctx, conn, len(steps))
	if err != nil {
		return err
	}
	if s.readOnly {
		if version < len(steps) {
			return withCause(ErrOlder, "open store %s: it has schema %d and must be migrated to %d, which needs write access; make the file writable, or copy it to a writable directory", s.place, version, len(steps))
		}
		return nil
	}
	if err := s.dialect.prepare(ctx, conn); err != nil {
		return err
	}
	return s.migrate(ctx, conn, steps)
}
