package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/google/renameio/v2"

	"windtunnel/internal/cli"
)

// writeOutput writes the file at path. It replaces a regular file of this user at once: after an
// error the old file is complete. It writes into devices, pipes, the targets of symbolic links,
// files with several hard links, and files of other users. Errors use what as the name of the
// content, such as "the html report".
func writeOutput(path, what string, write func(io.Writer) error) error {
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return fmt.Errorf("make %s: %w", what, err)
	}
	var err error
	if target, ok := replaceable(path); ok {
		err = renameio.WriteFile(target, b.Bytes(), 0o644, renameio.WithTempDir(filepath.Dir(target)), renameio.WithExistingPermissions())
	} else {
		err = writeInPlace(path, b.Bytes())
	}
	if err != nil {
		return fmt.Errorf("write %s %s: %w", what, path, systemError(err))
	}
	return nil
}

// replaceable reports whether a new file may take the place of the file at path. target is path
// without symbolic links.
func replaceable(path string) (target string, ok bool) {
	target, err := filepath.EvalSymlinks(path)
	if errors.Is(err, os.ErrNotExist) {
		_, err := os.Lstat(path) // a link to a missing file is written through
		return path, errors.Is(err, os.ErrNotExist)
	}
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return "", false
	}
	st, known := info.Sys().(*syscall.Stat_t)
	return target, known && st.Nlink == 1 && int(st.Uid) == os.Geteuid()
}

func writeInPlace(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// systemError returns the system's error in err, or err. The text of a system's error
// does not have the name of a temporary file.
func systemError(err error) error {
	var cause syscall.Errno
	if errors.As(err, &cause) {
		return cause
	}
	return err
}

// ending is the end of a file's name that chooses a format.
type ending struct{ suffix, format string }

// formatOf returns the name of the format for the file at path: by its ending, or fallback if path
// is standard output, a directory, a device or a pipe.
func formatOf(path, fallback string, endings []ending) (string, error) {
	if path == "" || path == "-" {
		return fallback, nil
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return fallback, nil
	}
	var known []string
	for _, e := range endings {
		if strings.HasSuffix(strings.ToLower(path), e.suffix) {
			return e.format, nil
		}
		known = append(known, e.suffix)
	}
	return "", cli.Misuse(fmt.Errorf("--output %s: no format has this ending; name a file with one of %s, or give --format", path, strings.Join(known, ", ")))
}
