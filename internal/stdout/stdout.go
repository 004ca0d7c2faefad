// Package stdout is the standard output of a program, which remembers a failed write. Thus a
// program reports a full disk even if a command ignores the error of a print function.
package stdout

import (
	"cmp"
	"fmt"
	"os"
)

// File is the standard output. It has no other methods of os.File: those would not remember
// an error.
type File struct{ err error }

// Write writes to the standard output.
func (f *File) Write(p []byte) (int, error) {
	n, err := os.Stdout.Write(p)
	f.err = cmp.Or(f.err, err)
	return n, err
}

// Fd returns the file descriptor, for questions about the terminal.
func (f *File) Fd() uintptr { return os.Stdout.Fd() }

// Or returns err, or without one an error about the first failed write.
func (f *File) Or(err error) error {
	if err == nil && f.err != nil {
		err = fmt.Errorf("print the result: %w; the output is incomplete", f.err)
	}
	return err
}
