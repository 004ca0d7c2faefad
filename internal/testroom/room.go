package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// room is the settings of the namespaces in which test binaries run.
type room struct {
	covers []string // files and directories that are not visible inside
	pids   bool     // whether it has a private process namespace
	again  bool     // whether skipped tests run once more in a room that covers nothing
}

// run runs argv in a new room, with the output to stdout and stderr.
func (r room) run(argv []string, stdout, stderr io.Writer) error {
	tmp, err := os.MkdirTemp("", "wt")
	if err != nil {
		return err
	}
	cmd := exec.Command("/proc/self/exe", append([]string{inside, tmp, strings.Join(r.covers, ":")}, argv...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, stdout, stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS, Pdeathsig: unix.SIGKILL}
	if r.pids {
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWPID
	}
	runtime.LockOSThread() // a parent's death is the death of the thread that forked (prctl(2))
	defer runtime.UnlockOSThread()
	if err = cmd.Start(); err == nil {
		stop := forward(cmd.Process)
		err = cmd.Wait()
		stop()
	}
	return errors.Join(err, os.Remove(tmp)) // the room's mount on it is gone
}

// enter sets up the room that this process is the first of, and runs a command in it.
func enter(args []string) error {
	tmp, covers, argv := args[0], args[1], args[2:]
	unix.Umask(0o022) // other users must be able to run the programs that a test writes
	m := mounts{}
	m.do("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
	m.do("proc", "/proc", "proc", 0, "")
	m.do("tmpfs", "/run", "tmpfs", 0, "mode=755")
	m.do("tmpfs", tmp, "tmpfs", 0, "")
	m.do("tmpfs", "/var/tmp", "tmpfs", 0, "")
	for path := range strings.SplitSeq(covers, ":") {
		if path != "" {
			m.cover(path)
		}
	}
	if m.err != nil {
		return m.err
	}
	if err := os.Setenv("TMPDIR", tmp); err != nil {
		return err
	}
	return supervise(argv)
}

// mounts keeps the first error of its calls.
type mounts struct{ err error }

func (m *mounts) do(source, target, kind string, flags uintptr, options string) {
	if m.err == nil {
		if err := unix.Mount(source, target, kind, flags, options); err != nil {
			m.err = fmt.Errorf("mount %s: %w", target, err)
		}
	}
}

// cover hides a file behind one that cannot be run, and a directory behind an empty one.
func (m *mounts) cover(path string) {
	info, err := os.Stat(path)
	switch {
	case m.err != nil:
	case err != nil:
		m.err = err
	case info.IsDir():
		m.do("tmpfs", path, "tmpfs", unix.MS_RDONLY, "")
	default:
		m.do("/dev/null", path, "", unix.MS_BIND, "")
	}
}
