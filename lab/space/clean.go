package space

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// Cleaned counts the objects that Clean removed.
type Cleaned struct {
	Namespaces []string
	Processes  []int
}

// Clean removes the remains of killed runs and forgotten testbeds. It ends every process in
// a namespace whose name starts with prefix, and the descendants of these processes in other
// namespaces. It removes the namespaces with their devices, files and control groups. Files
// and control groups are removed also without their name
func Clean(prefix string) (Cleaned, error) {
	var c Cleaned
	names, err := Named(prefix)
	if err != nil {
		return c, err
	}
	homes, err := Homes(prefix)
	if err != nil || len(names)+len(homes) == 0 {
		return c, err
	}
	homes = slices.DeleteFunc(homes, func(n string) bool { return slices.Contains(names, n) }) // left: those whose namespace is gone
	names, err = ours(names)
	errs := []error{err}
	homes, err = ours(homes)
	errs = append(errs, err)
	inodes := map[uint64]bool{}
	for _, n := range names {
		var st unix.Stat_t
		if err := unix.Stat(filepath.Join(Dir, n), &st); err == nil {
			inodes[st.Ino] = true
		}
	}
	c.Processes, err = endProcesses(inodes)
	errs = append(errs, err)
	for _, n := range names {
		errs = append(errs, DeleteCgroups(n), Delete(n))
		if _, err := os.Stat(filepath.Join(Dir, n)); errors.Is(err, os.ErrNotExist) {
			c.Namespaces = append(c.Namespaces, n)
		}
	}
	for _, n := range homes {
		errs = append(errs, DeleteCgroups(n), Delete(n))
	}
	return c, errors.Join(errs...)
}

// ours omits the namespaces with a device of another host namespace on this machine. A
// process there removes them. It also omits those whose loan cannot be read.
func ours(names []string) (list []string, err error) {
	for _, n := range names {
		elsewhere, failed := lentElsewhere(n)
		if failed == nil && !elsewhere {
			list = append(list, n)
		}
		err = errors.Join(err, failed)
	}
	return list, err
}

const processesEnd = 2 * time.Second

// endProcesses kills every process in one of the namespaces and its descendants, and waits
// until they are gone. A descendant in another namespace is found by its parent, as long as
// the parent lives. So endProcesses first stops all of them, until no running process is
// left that could start another one.
func endProcesses(inodes map[uint64]bool) ([]int, error) {
	var pids []int
	stopped := map[int]bool{}
	for {
		found, err := inside(inodes)
		if err != nil {
			return nil, err
		}
		fresh := slices.DeleteFunc(found, func(pid int) bool { return stopped[pid] })
		if len(fresh) == 0 {
			break
		}
		for _, pid := range fresh {
			stopped[pid] = true
			pids = append(pids, pid)
			if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil && !errors.Is(err, syscall.ESRCH) {
				return nil, fmt.Errorf("stop process %d: %w", pid, err)
			}
		}
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return nil, fmt.Errorf("end process %d: %w", pid, err)
		}
	}
	for deadline := time.Now().Add(processesEnd); ; time.Sleep(10 * time.Millisecond) {
		left := slices.DeleteFunc(slices.Clone(pids), hasEnded)
		if len(left) == 0 {
			return pids, nil
		}
		if time.Now().After(deadline) {
			return pids, fmt.Errorf("processes %v were killed and do not end", left)
		}
	}
}

// hasEnded reports whether a process is gone or is a zombie.
func hasEnded(pid int) bool {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return true
	}
	stat, err := p.Stat()
	return err != nil || stat.State == "Z" || stat.State == "X"
}

// inside lists the processes in the namespaces and all their descendants, but
// never the caller.
func inside(inodes map[uint64]bool) ([]int, error) {
	all, err := procfs.AllProcs()
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	children := map[int][]int{}
	var found []int
	for _, p := range all {
		if stat, err := p.Stat(); err == nil && stat.State != "Z" {
			children[stat.PPID] = append(children[stat.PPID], p.PID)
		}
		var st unix.Stat_t
		if unix.Stat(fmt.Sprintf("/proc/%d/ns/net", p.PID), &st) == nil && inodes[st.Ino] {
			found = append(found, p.PID)
		}
	}
	known := map[int]bool{os.Getpid(): true} // and with it, all that is found only by way of the caller
	var pids []int
	for len(found) > 0 {
		pid := found[0]
		found = found[1:]
		if !known[pid] {
			known[pid] = true
			pids = append(pids, pid)
			found = append(found, children[pid]...)
		}
	}
	return pids, nil
}
