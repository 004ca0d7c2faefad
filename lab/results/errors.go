package results

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// Causes of errors, for errors.Is.
var (
	ErrNotStore   = errors.New("not a store of windtunnel")
	ErrNewer      = errors.New("store is from a newer version")
	ErrOlder      = errors.New("store is from an older version")
	ErrReadOnly   = errors.New("read-only")
	ErrDiskFull   = errors.New("disk full")
	ErrCorrupt    = errors.New("store is damaged")
	ErrUnknownRun = errors.New("no such run")
	ErrTaken      = errors.New("it has a run with this ID already")
)

// causedError is an error whose text does not repeat the text of its cause.
type causedError struct {
	text  string
	cause error
}

func (c *causedError) Error() string { return c.text }
func (c *causedError) Unwrap() error { return c.cause }

// withCause returns an error with the given text. The text does not have the cause, but
// errors.Is finds it.
func withCause(cause error, format string, args ...any) error {
	return &causedError{fmt.Sprintf(format, args...), cause}
}

// newer is the error for a store that a newer windtunnel wrote.
func newer(place string, version, newest int) error {
	return withCause(ErrNewer, "open store %s: its schema is version %d, and this windtunnel knows versions up to %d; use the newer windtunnel that wrote it, or another store with --db", place, version, newest)
}

// explain adds the operation, the file and the remedy to an error of SQLite. what is the
// operation, such as "open store".
func explain(err error, what, path string) error {
	var e *sqlite.Error
	if err == nil || !errors.As(err, &e) {
		return fmt.Errorf("%s %s: %w", what, path, err)
	}
	code := primary(e)
	if code == sqlite3.SQLITE_IOERR && full(path) {
		code = sqlite3.SQLITE_FULL
	}
	switch code {
	case sqlite3.SQLITE_FULL:
		return withCause(errors.Join(ErrDiskFull, err), "%s %s: no space is left on %s; free some space and resume the run (the store keeps the finished trials): %v", what, path, filepath.Dir(path), err)
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM:
		return withCause(errors.Join(ErrReadOnly, err), "%s %s: it cannot be written; choose another file with --db: %v", what, path, err)
	case sqlite3.SQLITE_NOTADB:
		return withCause(errors.Join(ErrNotStore, err), "%s %s: the file is not a SQLite database; it is unchanged; name another with --db: %v", what, path, err)
	case sqlite3.SQLITE_CORRUPT:
		return withCause(errors.Join(ErrCorrupt, err), "%s %s: the store is damaged; keep a copy and try `sqlite3 %s .recover`, or name another store with --db: %v", what, path, path, err)
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return fmt.Errorf("%s %s: another process has been writing to it for too long; wait for it or end it, then try again: %w", what, path, err)
	case sqlite3.SQLITE_IOERR:
		return fmt.Errorf("%s %s: the disk or file system failed: %w", what, path, err)
	}
	return fmt.Errorf("%s %s: %w", what, path, err)
}

// primary returns SQLite's primary result code: the low byte of the extended code.
func primary(e *sqlite.Error) int { return e.Code() & 0xff }

// isBusy reports whether SQLite returned the error because another connection holds a
// lock.
func isBusy(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && (primary(e) == sqlite3.SQLITE_BUSY || primary(e) == sqlite3.SQLITE_LOCKED)
}

// full reports whether the file system of path has no free block. On a full file system
// SQLite may return "I/O error" instead of "full": when its log or its shared memory
// cannot grow.
func full(path string) bool {
	var st unix.Statfs_t
	return unix.Statfs(filepath.Dir(path), &st) == nil && st.Bavail == 0
}

// fileError explains why a file or directory cannot be made or written.
func fileError(what string, err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return withCause(errors.Join(ErrDiskFull, err), "%s: no space is left; free some space, or choose another file with --db: %v", what, err)
	case errors.Is(err, syscall.EROFS), errors.Is(err, fs.ErrPermission):
		return withCause(errors.Join(ErrReadOnly, err), "%s: it cannot be written; choose another file with --db: %v", what, err)
	case errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("%s: a part of the path is a file; choose another file with --db: %w", what, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}

func writableDir(dir string) bool { return unix.Access(dir, unix.W_OK) == nil }
