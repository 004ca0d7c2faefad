// Package ptytest runs a program of a test on a pseudo-terminal that never answers.
package ptytest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
)

// Run runs a command with stdin, stdout and stderr on a pseudo-terminal of 100 columns. It
// returns all bytes that the program wrote, and its error. The terminal answers no query.
func Run(t *testing.T, cmd *exec.Cmd) ([]byte, error) {
	t.Helper()
	main, replica := Open(t, 100)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = replica, replica, replica
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	must.Succeed(t, cmd.Start())
	replica.Close()
	written, err := io.ReadAll(main) // ends with EIO after the last process with the terminal
	if err != nil && !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	return written, cmd.Wait()
}

// NoQuery runs a program with several arguments on a terminal, which must get text without escape
// sequences.
func NoQuery(t *testing.T, program string, commands ...string) {
	t.Helper()
	for _, args := range commands {
		cmd := exec.Command(program, strings.Fields(args)...)
		cmd.Env = append(os.Environ(), "TERM=xterm-256color", "CI=")
		if out, _ := Run(t, cmd); len(out) == 0 || bytes.ContainsRune(out, '\x1b') {
			t.Errorf("%s %s wrote %q, want text without escape sequences", program, args, out)
		}
	}
}

// FullOutput runs a program with several arguments with a standard output that is full. Each must
// fail with the reason.
func FullOutput(t *testing.T, program string, commands ...string) {
	t.Helper()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	for _, args := range commands {
		cmd := exec.Command(program, strings.Fields(args)...)
		var problems bytes.Buffer
		cmd.Stdout, cmd.Stderr = full, &problems
		if err := cmd.Run(); cmd.ProcessState.ExitCode() != 1 || !strings.Contains(problems.String(), "no space left on device") {
			t.Errorf("%s %s: %v, %q; want exit status 1 and the reason", program, args, err, problems.String())
		}
	}
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
