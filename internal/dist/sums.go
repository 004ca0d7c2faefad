package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// sums is the file with the sums of all others.
const sums = "SHA256SUMS"

// sum writes the sums of a folder's files and returns the names of all its files.
func sum(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	var lines strings.Builder
	for _, e := range entries {
		digest := sha256.New()
		if err := copyFrom(digest, filepath.Join(dir, e.Name())); err != nil {
			return nil, err
		}
		fmt.Fprintf(&lines, "%x  %s\n", digest.Sum(nil), e.Name())
		names = append(names, e.Name())
	}
	err = writeFile(filepath.Join(dir, sums), func(w io.Writer) error {
		_, err := io.WriteString(w, lines.String())
		return err
	})
	return append(names, sums), err
}

// emptyFolder makes a folder, or empties it if it holds a former release and nothing else.
func emptyFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	former, err := os.ReadFile(filepath.Join(dir, sums))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for line := range strings.Lines(string(former)) {
		_, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		if name != filepath.Base(name) {
			return fmt.Errorf("%s in %s names %q, which is not a file of a release; choose another folder with -o", sums, dir, name)
		}
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := os.Remove(filepath.Join(dir, sums)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	left, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		return fmt.Errorf("%s holds %s, which is not a file of a former release; delete it, or choose another folder with -o", dir, left[0].Name())
	}
	return nil
}
