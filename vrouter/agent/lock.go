package agent

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"windtunnel/vrouter/agent/config"
)

// lock prevents a second agent on a node. The kernel releases it when the process
// ends.
type lock struct {
	file *os.File
}

// heldError is the error that another agent holds the lock.
type heldError struct {
	node, pid string
}

func (e *heldError) Error() string {
	return fmt.Sprintf("node %s already has an agent, process %s; stop that process first, or configure another node name here", e.node, e.pid)
}

// takeLock takes a node's lock. If another agent holds it, it returns a *heldError. Only root
// can open the file: flock(2) needs no right to write it.
func takeLock(c config.Config) (*lock, error) {
	path := c.LockPath()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("create the directory of node %s's lock: %w", c.Node, err)
	}
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, fmt.Errorf("open node %s's lock (needs root): %w", c.Node, err)
		}
		if err := f.Chmod(0o600); err != nil { // of an older version
			f.Close()
			return nil, fmt.Errorf("set the mode of %s: %w", path, err)
		}
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			defer f.Close()
			if errors.Is(err, unix.EWOULDBLOCK) {
				return nil, &heldError{c.Node, holder(f)}
			}
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		if !isStill(f, path) { // the previous agent deleted the file between open and flock
			f.Close()
			continue
		}
		if err := writePID(f); err != nil {
			f.Close()
			return nil, fmt.Errorf("write the process id to %s: %w", path, err)
		}
		return &lock{f}, nil
	}
}

// holder reads the process id of the agent that holds the lock.
func holder(f *os.File) string {
	text := make([]byte, 32)
	n, _ := f.ReadAt(text, 0)
	pid := string(bytes.TrimSpace(text[:n]))
	if _, err := strconv.Atoi(pid); err != nil {
		return "unknown"
	}
	return pid
}

func isStill(f *os.File, path string) bool {
	open, err := f.Stat()
	if err != nil {
		return false
	}
	current, err := os.Stat(path)
	return err == nil && os.SameFile(open, current)
}

func writePID(f *os.File) error {
	text := strconv.AppendInt(nil, int64(os.Getpid()), 10)
	if _, err := f.WriteAt(append(text, '\n'), 0); err != nil {
		return err
	}
	return f.Truncate(int64(len(text) + 1))
}

// release releases the lock at once: a child process that another goroutine has just forked may still have a copy
// of the descriptor. The file stays for the next agent.
func (l *lock) release() error {
	return errors.Join(unix.Flock(int(l.file.Fd()), unix.LOCK_UN), l.file.Close())
}

// remove releases the lock and deletes its file.
func (l *lock) remove() error { return errors.Join(os.Remove(l.file.Name()), l.file.Close()) }
