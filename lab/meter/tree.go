package meter

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// tree has the processes of the tools: the given roots, their descendants, and
// earlier descendants that have another parent now (servers that went to the
// background).
type tree struct {
	roots map[int]string // pid to label
	known map[processKey]string
}

func (t *tree) track(label string, pid int) {
	if t.roots == nil {
		t.roots, t.known = map[int]string{}, map[processKey]string{}
	}
	t.roots[pid] = label
}

// read lists the processes that still exist, in order of their ids.
func (t *tree) read() ([]Process, error) {
	found := map[int]Process{}
	for pid, label := range t.roots {
		if err := t.descend(pid, label, found); err != nil {
			return nil, err
		}
	}
	for key, label := range t.known {
		if _, ok := found[key.pid]; ok {
			continue
		}
		if p, err := readProcess(key.pid); err == nil && p.Starttime == key.start {
			if err := t.descend(key.pid, label, found); err != nil {
				return nil, err
			}
		}
	}
	list := make([]Process, 0, len(found))
	for _, p := range found {
		t.known[p.key()] = p.Label
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b Process) int { return a.PID - b.PID })
	return list, nil
}

// descend adds a process and all its descendants. A process that has ended is
// left out without an error.
func (t *tree) descend(pid int, label string, found map[int]Process) error {
	if _, ok := found[pid]; ok {
		return nil
	}
	stat, err := readProcess(pid)
	if ended(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read process %d: %w", pid, err)
	}
	ran, err := processCPU(pid, stat)
	if ended(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read CPU time of process %d: %w", pid, err)
	}
	found[pid] = Process{
		Label: label, PID: pid, Parent: stat.PPID, Start: stat.Starttime, Name: stat.Comm, CPU: ran,
		Waited: int64(stat.CUTime+stat.CSTime) * tickNanoseconds,
	}
	children, err := childrenOf(pid)
	if err != nil {
		return fmt.Errorf("list children of process %d: %w", pid, err)
	}
	for _, c := range children {
		if err := t.descend(c, label, found); err != nil {
			return err
		}
	}
	return nil
}

func ended(err error) bool {
	return errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH)
}

func readProcess(pid int) (procfs.ProcStat, error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return procfs.ProcStat{}, err
	}
	return p.Stat()
}

// processCPU reads the process's CPU clock, which is exact to the nanosecond and
// includes ended threads (clock_getcpuclockid(3); posix-cpu-timers.c). If a sandbox
// forbids that, it uses the ticks of /proc/PID/stat.
func processCPU(pid int, stat procfs.ProcStat) (int64, error) {
	ran, err := processClock(pid)
	switch {
	case err == nil:
		return ran, nil
	case !exists(pid):
		return 0, os.ErrNotExist
	}
	return int64(stat.UTime+stat.STime) * tickNanoseconds, nil
}

func processClock(pid int) (int64, error) {
	const scheduled = 2 // CPUCLOCK_SCHED
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|scheduled), &ts); err != nil {
		return 0, err
	}
	return ts.Nano(), nil
}

func exists(pid int) bool {
	_, err := os.Stat(procPath(pid, ""))
	return err == nil
}

// childrenOf lists the processes whose parent is a thread of pid. On kernels
// without CONFIG_PROC_CHILDREN it looks at every process.
func childrenOf(pid int) ([]int, error) {
	lists, err := filepath.Glob(procPath(pid, "task/*/children"))
	if err != nil {
		return nil, err
	}
	if len(lists) == 0 && exists(pid) {
		return childrenByScan(pid)
	}
	var pids []int
	for _, path := range lists {
		text, err := os.ReadFile(path)
		if ended(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for f := range strings.FieldsSeq(string(text)) {
			child, err := strconv.Atoi(f)
			if err != nil {
				return nil, fmt.Errorf("read %s: %w", path, err)
			}
			pids = append(pids, child)
		}
	}
	return pids, nil
}

func childrenByScan(parent int) ([]int, error) {
	all, err := procfs.AllProcs()
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, p := range all {
		if s, err := p.Stat(); err == nil && s.PPID == parent {
			pids = append(pids, p.PID)
		}
	}
	return pids, nil
}

func procPath(pid int, file string) string {
	return filepath.Join("/proc", strconv.Itoa(pid), file)
}

// Process is a tool's process with its CPU time.
type Process struct {
	Label  string `json:"label"` // as given to Track
	PID    int    `json:"pid"`
	Parent int    `json:"parent"` // its parent's process id
	Start  uint64 `json:"start"`  // start time in ticks since boot; with PID it identifies the process
	Name   string `json:"name"`
	// CPU is the run time of all its threads, ended ones too, in nanoseconds.
	CPU int64 `json:"cpu_ns"`
	// Waited is the CPU time of its ended children, in nanoseconds, cut to
	// whole ticks.
	Waited int64 `json:"waited_ns"`
}

type processKey struct {
	pid   int
	start uint64
}

func (p Process) key() processKey { return processKey{p.PID, p.Start} }
