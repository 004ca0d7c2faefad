package netns

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"windtunnel/lab/space"
)

// Cleaned says what Clean removed.
type Cleaned struct {
	Namespaces []string
	Processes  []int
}

// Clean removes what killed runs and forgotten testbeds left: every process in
// a namespace whose name starts with Prefix, and the namespaces with all their
// devices. It takes the lock, so that it never cuts down a testbed in use.
func Clean(prefix string) (Cleaned, error) {
	var c Cleaned
	names, err := Named(prefix)
	if err != nil || len(names) == 0 {
		return c, err
	}
	inodes := map[uint64]bool{}
	for _, n := range names {
		var st unix.Stat_t
		if err := unix.Stat(filepath.Join(space.Dir, n), &st); err == nil {
			inodes[st.Ino] = true
		}
	}
	var errs []error
	c.Processes, err = endProcesses(inodes)
	errs = append(errs, err)
	for _, n := range names {
		if err := space.Delete(n); err != nil {
			errs = append(errs, err)
			continue
		}
		c.Namespaces = append(c.Namespaces, n)
	}
	return c, errors.Join(errs...)
}

// endProcesses kills every process that lives in one of the namespaces and
// waits until they are gone.
func endProcesses(inodes map[uint64]bool) ([]int, error) {
	pids, err := inside(inodes)
	if err != nil {
		return nil, err
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return nil, fmt.Errorf("end process %d: %w", pid, err)
		}
	}
	for deadline := time.Now().Add(2 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		left, err := inside(inodes)
		if err != nil || len(left) == 0 {
			return pids, err
		}
		if time.Now().After(deadline) {
			return pids, fmt.Errorf("processes %v were killed and do not end", left)
		}
	}
}

func inside(inodes map[uint64]bool) ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var pids []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		var st unix.Stat_t
		if unix.Stat(filepath.Join("/proc", e.Name(), "ns/net"), &st) == nil && inodes[st.Ino] {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// Named lists the network namespaces whose names start so.
func Named(prefix string) ([]string, error) {
	entries, err := os.ReadDir(space.Dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list network namespaces: %w", err)
	}
	var names []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}
