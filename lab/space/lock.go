package space

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// LockPath is the file that a measurement locks.
const LockPath = "/run/windtunnel.lock"

// Lock prevents that two measurements run at once.
type Lock struct{ file *os.File }

// HeldError is the error of TakeLock while another process has the lock.
type HeldError struct{ Holder string } // process ID and command line

func (e *HeldError) Error() string {
	return fmt.Sprintf("another measurement runs on this machine (%s); two measurements on one node falsify each other: wait for it, or end it", e.Holder)
}

// TakeLock takes the lock. If another process has it, the error is a HeldError. The
// kernel releases the lock when the process ends.
func TakeLock(path string) (*Lock, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("make the directory of the lock file %s: %w", path, err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open the lock file %s: %w", path, err)
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		holder, _ := os.ReadFile(path)
		f.Close()
		return nil, &HeldError{strings.TrimSpace(string(holder))}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
	}
	if !stillAt(f, path) {
		f.Close() // the last holder removed it between our open and our lock
		return TakeLock(path)
	}
	if err := errors.Join(f.Truncate(0), writeHolder(f)); err != nil {
		return nil, errors.Join(fmt.Errorf("write %s: %w", path, err), f.Close())
	}
	return &Lock{f}, nil
}

func writeHolder(f *os.File) error {
	_, err := f.WriteAt([]byte(fmt.Sprintf("process %d: %s\n", os.Getpid(), strings.Join(os.Args, " "))), 0)
	return err
}

// stillAt reports whether path is the file that was opened.
func stillAt(f *os.File, path string) bool {
	opened, err1 := f.Stat()
	now, err2 := os.Lstat(path)
	return err1 == nil && err2 == nil && os.SameFile(opened, now)
}

// Unlock releases the lock and removes the file. The file can be removed already.
func (l *Lock) Unlock() error {
	var err error
	if path := l.file.Name(); stillAt(l.file, path) {
		err = os.Remove(path)
	}
	return errors.Join(err, l.file.Close())
}
