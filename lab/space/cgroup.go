package space

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
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
