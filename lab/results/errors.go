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

// Causes for errors.Is. The texts of the errors do not contain them.
var (
	ErrNotStore   = errors.New("not a store of windtunnel")
	ErrNewer      = errors.New("store is from a newer version")
	ErrOlder      = errors.New("written by an older windtunnel, and must be brought up to date")
	ErrReadOnly   = errors.New("read-only")
	ErrDiskFull   = errors.New("disk full")
	ErrCorrupt    = errors.New("store is damaged")
	ErrUnknownRun = errors.New("no such run")
	ErrTaken      = errors.New("it holds a run of that ID already")
)

// caused is an error whose text does not repeat the text of its cause.
type caused struct {
	text  string
	cause error
}

func (c *caused) Error() string { return c.text }
func (c *caused) Unwrap() error { return c.cause }

// because returns an error with a text for people and a cause for errors.Is.
func because(cause error, format string, args ...any) error {
	return &caused{fmt.Sprintf(format, args...), cause}
}

// explain wraps an error of SQLite with what was attempted, on which file, and
// the remedy.
func explain(err error, what, path string) error {
	var e *sqlite.Error
	if err == nil || !errors.As(err, &e) {
		return fmt.Errorf("%s %s: %w", what, path, err)
	}
	switch primary(e) {
	case sqlite3.SQLITE_FULL:
		return because(errors.Join(ErrDiskFull, err), "%s %s: no space is left on %s; free some and resume the run (the samples stored so far are kept): %v", what, path, filepath.Dir(path), err)
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM:
		return because(errors.Join(ErrReadOnly, err), "%s %s: it cannot be written; choose another file with --db: %v", what, path, err)
	case sqlite3.SQLITE_NOTADB:
		return because(errors.Join(ErrNotStore, err), "%s %s: the file is not a SQLite database; it is unchanged; name another with --db: %v", what, path, err)
	case sqlite3.SQLITE_CORRUPT:
		return because(errors.Join(ErrCorrupt, err), "%s %s: the store is damaged; keep a copy and try `sqlite3 %s .recover`, or name another store with --db: %v", what, path, path, err)
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return fmt.Errorf("%s %s: another process has been writing to it for too long; wait for it or end it, then try again: %w", what, path, err)
	case sqlite3.SQLITE_IOERR:
		if full(path) {
			return because(errors.Join(ErrDiskFull, err), "%s %s: no space is left on %s; free some and resume the run (the samples stored so far are kept): %v", what, path, filepath.Dir(path), err)
		}
		return fmt.Errorf("%s %s: the disk or file system failed: %w", what, path, err)
	}
	return fmt.Errorf("%s %s: %w", what, path, err)
}

// primary returns the class of the error: the low byte of its code.
func primary(e *sqlite.Error) int { return e.Code() & 0xff }

// isBusy reports whether the lock of another connection caused the error.
func isBusy(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && (primary(e) == sqlite3.SQLITE_BUSY || primary(e) == sqlite3.SQLITE_LOCKED)
}

// full reports whether the file system of path is full. SQLite only says "I/O error"
// if its log or shared memory cannot grow.
func full(path string) bool {
	var st unix.Statfs_t
	return unix.Statfs(filepath.Dir(path), &st) == nil && st.Bavail == 0
}

// placeError explains why a file or directory cannot be made or written.
func placeError(what string, err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return because(errors.Join(ErrDiskFull, err), "%s: no space is left; free some, or choose another file with --db: %v", what, err)
	case errors.Is(err, syscall.EROFS), errors.Is(err, fs.ErrPermission):
		return because(errors.Join(ErrReadOnly, err), "%s: it cannot be written; choose another file with --db: %v", what, err)
	case errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("%s: a part of the path is a file; choose another file with --db: %w", what, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}

func writableDir(dir string) bool { return unix.Access(dir, unix.W_OK) == nil }
