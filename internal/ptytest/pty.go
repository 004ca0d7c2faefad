// Package ptytest runs a program of a test on a pseudo-terminal that never answers.
package ptytest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// Run runs a command with stdin, stdout and stderr on a pseudo-terminal of 100 columns. It
// returns all bytes that the program wrote, and its error. The terminal answers no query.
func Run(t *testing.T, cmd *exec.Cmd) ([]byte, error) {
	t.Helper()
	main, replica := Open(t, 100)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = replica, replica, replica
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	replica.Close()
	written, err := io.ReadAll(main) // ends with EIO after the last process with the terminal
	if err != nil && !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	return written, cmd.Wait()
}

// Open opens both sides of a new pseudo-terminal with a width in columns (pts(4)).
func Open(t *testing.T, columns uint16) (main, replica *os.File) {
	t.Helper()
	main, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("open a pseudo-terminal: %v", err)
	}
	t.Cleanup(func() { main.Close() })
	fd := int(main.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatalf("unlock the pseudo-terminal: %v", err)
	}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatalf("read the number of the pseudo-terminal: %v", err)
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns}); err != nil {
		t.Fatalf("set the size of the pseudo-terminal: %v", err)
	}
	if replica, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { replica.Close() })
	return main, replica
}
