package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// supervise runs a command. When it ends, supervise kills the processes that it left, also
// those that lost their parents.
func supervise(argv []string) error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("adopt the processes that lose their parents: %w", err)
	}
	child, err := os.StartProcess(argv[0], argv, &os.ProcAttr{
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
		Sys:   &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL},
	})
	if err != nil {
		return err
	}
	forward(child)
	status, err := reap(child.Pid)
	if err := errors.Join(err, killRest()); err != nil {
		return err
	}
	if status.Signaled() {
		return fmt.Errorf("%s: ended by the signal %s", filepath.Base(argv[0]), status.Signal())
	}
	os.Exit(status.ExitStatus())
	return nil
}

// reap waits for children and adopted processes until the process with this number ends, and
// returns its status.
func reap(pid int) (unix.WaitStatus, error) {
	for {
		var status unix.WaitStatus
		ended, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case err == unix.EINTR:
		case err != nil || ended == pid:
			return status, err
		}
	}
}

// killRest kills the children of this process until there are none: the children of killed
// processes become children of this process.
func killRest() error {
	for {
		children, err := childrenOfSelf()
		if err != nil || len(children) == 0 {
			return err
		}
		for _, pid := range children {
			_ = unix.Kill(pid, unix.SIGKILL) // it may have ended
		}
		if _, err := unix.Wait4(-1, nil, 0, nil); err != nil && err != unix.EINTR && err != unix.ECHILD {
			return err
		}
	}
}

func childrenOfSelf() ([]int, error) {
	lists, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		return nil, err
	}
	var children []int
	for _, path := range lists {
		text, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) {
			continue // the thread has ended
		}
		if err != nil {
			return nil, err
		}
		for field := range bytes.FieldsSeq(text) {
			pid, err := strconv.Atoi(string(field))
			if err != nil {
				return nil, fmt.Errorf("read %s: %w", path, err)
			}
			children = append(children, pid)
		}
	}
	return children, nil
}
