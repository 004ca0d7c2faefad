package space

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	cgroups = "/sys/fs/cgroup"
	// cgroupEmpties is the maximum wait for a killed process to leave its control
	// group.
	cgroupEmpties = 2 * time.Second
)

// Cgroup returns the path of the control group for the processes in a namespace,
// from the root of a hierarchy. Only programs that need the control group create it.
func Cgroup(name string) string { return "/" + name }

// LimitCPU moves a process to the namespace's control group, which gives it and the
// processes that it starts a number of CPUs' time, such as 0.25. It creates the group.
func LimitCPU(name string, cpus float64, pid int) error {
	// A short period makes short pauses. The kernel accepts quotas of 1 ms and more.
	const least = 1000 // µs
	period := max(10*least, int(math.Ceil(least/cpus)))
	quota := max(least, int(math.Round(cpus*float64(period))))
	group, files, err := cpuGroup(name)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(group, 0o755); err != nil {
		return fmt.Errorf("create control group %s: %w", group, err)
	}
	for _, f := range files(quota, period) {
		if err := os.WriteFile(filepath.Join(group, f[0]), []byte(f[1]), 0o644); err != nil {
			return fmt.Errorf("limit the CPU time of control group %s: %w", group, err)
		}
	}
	return join(group, pid)
}

func join(group string, pid int) error {
	if err := os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o644); err != nil {
		return fmt.Errorf("move process %d to control group %s: %w", pid, group, err)
	}
	return nil
}

// JoinCPULimit moves a process to the namespace's control group of LimitCPU. It does
// nothing if there is none.
func JoinCPULimit(name string, pid int) error {
	group, _, err := cpuGroup(name)
	if err != nil {
		return nil // nothing limits CPU time on this machine
	}
	if _, err := os.Stat(group); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return join(group, pid)
}

// cpuGroup returns the path of the namespace's group in the hierarchy that limits CPU
// time, and the files with a limit in their order, in µs.
func cpuGroup(name string) (group string, files func(quota, period int) [][2]string, err error) {
	if controllers, err := os.ReadFile(cgroups + "/cgroup.controllers"); err == nil && slices.Contains(strings.Fields(string(controllers)), "cpu") {
		if err := os.WriteFile(cgroups+"/cgroup.subtree_control", []byte("+cpu"), 0o644); err != nil {
			return "", nil, fmt.Errorf("turn on the controller cpu in %s: %w", cgroups, err)
		}
		return cgroups + Cgroup(name), func(quota, period int) [][2]string {
			return [][2]string{{"cpu.max", fmt.Sprintf("%d %d", quota, period)}}
		}, nil
	}
	for _, hierarchy := range []string{"/cpu", "/cpu,cpuacct"} {
		if _, err := os.Stat(cgroups + hierarchy + "/cpu.cfs_quota_us"); err == nil {
			return cgroups + hierarchy + Cgroup(name), func(quota, period int) [][2]string {
				return [][2]string{{"cpu.cfs_period_us", strconv.Itoa(period)}, {"cpu.cfs_quota_us", strconv.Itoa(quota)}}
			}, nil
		}
	}
	return "", nil, fmt.Errorf("no control group in %s limits CPU time (CONFIG_CFS_BANDWIDTH): mount the hierarchy of version 2, or the controller cpu of version 1", cgroups)
}

// CanLimitCPU returns nil if LimitCPU works on this machine.
func CanLimitCPU() error {
	_, _, err := cpuGroup("")
	return err
}

// DeleteCgroups removes a namespace's control groups in every hierarchy, version 1
// and 2. It returns an error if a process in a group still runs and is not about to
// end.
func DeleteCgroups(name string) error {
	var errs []error
	for _, pattern := range []string{cgroups + Cgroup(name), cgroups + "/*" + Cgroup(name)} {
		roots, err := filepath.Glob(pattern)
		errs = append(errs, err)
		for _, root := range roots {
			errs = append(errs, deleteCgroup(root))
		}
	}
	return errors.Join(errs...)
}

// deleteCgroup removes a group and its subgroups, the deepest first. The files in a
// group disappear with it.
func deleteCgroup(root string) error {
	var groups []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			groups = append(groups, path)
		}
		return err
	})
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("list control group %s: %w", root, err)
	}
	deadline := time.Now().Add(cgroupEmpties)
	for _, g := range slices.Backward(groups) {
		err := unix.Rmdir(g)
		for errors.Is(err, unix.EBUSY) && time.Now().Before(deadline) {
			time.Sleep(10 * time.Millisecond)
			err = unix.Rmdir(g)
		}
		if err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("remove control group %s: %w", g, err)
		}
	}
	return nil
}
