package results

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// A reader who cannot write the directory of a SQLite file cannot make the files of its
// write-ahead log, -wal and -shm. It uses those of a process that writes, or that was killed.
// Without them all data are in the file, and the reader reads the file without locks. So it
// opens the file for each read anew, and reads again if the file changed meanwhile.

// closing is the longest time in which the last process that closes a store has deleted the -shm
// file and not yet the -wal file (SQLite, wal.c, sqlite3WalClose).
const closing = time.Second

// withoutLog reports whether the file at path must be read without a log. It returns an error
// if the log has samples that the file lacks, and SQLite cannot read the log.
func withoutLog(path string) (bool, error) {
	if writableDir(filepath.Dir(path)) {
		return false, nil
	}
	return lacksLog(path)
}

// lacksLog is withoutLog in a directory that cannot be written.
func lacksLog(path string) (bool, error) {
	for limit := time.Now().Add(closing); ; time.Sleep(5 * time.Millisecond) {
		log, err := os.Stat(path + "-wal")
		if err != nil || log.Size() == 0 {
			return true, nil
		}
		if _, err := os.Stat(path + "-shm"); err == nil {
			return false, nil
		}
		if time.Now().After(limit) {
			name := filepath.Base(path)
			return false, withCause(ErrReadOnly, "its directory cannot be written, and %s-wal has samples that the file lacks; copy %[1]s and %[1]s-wal to a writable directory and open the copy", name)
		}
	}
}

// fileState returns a text that changes if a writer can have changed the file at path since the
// last call. It is "" if SQLite's locks keep readers and writers apart.
func fileState(path string) string {
	if alone, err := withoutLog(path); err != nil || !alone {
		return ""
	}
	info, err := os.Stat(path)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(info.Size(), info.ModTime().UnixNano())
}

// unsettled reports whether an error comes from a log whose files another process was just making
// or deleting. SQLite cannot make them itself in a directory that it cannot write.
func unsettled(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && (primary(e) == sqlite3.SQLITE_READONLY || primary(e) == sqlite3.SQLITE_CANTOPEN)
}
