package results

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

const fileName = "windtunnel.db"

// DefaultPath returns the path of the store without --db:
// $XDG_DATA_HOME/windtunnel/windtunnel.db, or ~/.local/share/windtunnel/windtunnel.db
// if the variable is unset or relative. Source: XDG Base Directory Specification 0.8.
func DefaultPath() (string, error) {
	base := os.Getenv("XDG_DATA_HOME")
	if !filepath.IsAbs(base) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("find the directory of the store: %w; set XDG_DATA_HOME or name a file with --db", err)
		}
		base = filepath.Join(home, ".local", "share")
	}
	return filepath.Join(base, "windtunnel", fileName), nil
}

// prepare checks the store's file and directory before SQLite opens the file. Its errors
// are clearer than SQLite's, which are mostly "unable to open database file".
func prepare(path string, readOnly bool) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && readOnly:
		return withCause(fs.ErrNotExist, "open store %s: there is no such file; the first run makes it, and --db names another", path)
	case errors.Is(err, fs.ErrNotExist):
		return prepareDirectory(path)
	case err != nil:
		return fmt.Errorf("open store %s: %w", path, err)
	case info.IsDir():
		return fmt.Errorf("open store %s: it is a directory; name a file in it, such as %s", path, filepath.Join(path, fileName))
	case !info.Mode().IsRegular(): // a pipe would wait for its other end
		return fmt.Errorf("open store %s: it is not a regular file; name another with --db", path)
	}
	if err := checkHeader(path); err != nil {
		return err
	}
	if !readOnly {
		return checkWritable(path)
	}
	return nil
}

func prepareDirectory(path string) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fileError(fmt.Sprintf("make directory %s for the store", dir), err)
	}
	if !writableDir(dir) {
		return withCause(ErrReadOnly, "make store %s: the directory cannot be written; choose another file with --db", path)
	}
	return nil
}

const header = "SQLite format 3\x00"

func checkHeader(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("open store %s: %w", path, err)
	}
	defer func() { _ = f.Close() }()
	got := make([]byte, len(header))
	n, err := io.ReadFull(f, got)
	if n == 0 && err == io.EOF {
		return nil // an empty file becomes a store
	}
	if string(got[:n]) != header {
		return withCause(ErrNotStore, "open store %s: the file is not a SQLite database; it is unchanged; name another with --db", path)
	}
	return nil
}

func checkWritable(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return fileError(fmt.Sprintf("open store %s for writing", path), err)
	}
	_ = f.Close()
	if !writableDir(filepath.Dir(path)) {
		return withCause(ErrReadOnly, "open store %s for writing: its directory cannot be written, which the write-ahead log needs; choose another file with --db", path)
	}
	return nil
}
