package space

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

const homes = "/run/windtunnel"

// Home returns the directory for the files of programs in a namespace: sockets,
// state, mounts. The first program that needs the directory creates it. Delete
// removes it with the namespace.
func Home(name string) string { return filepath.Join(homes, name) }

// Homes lists the names of the homes that start with a prefix. The namespace of a
// home may have been deleted.
func Homes(prefix string) ([]string, error) { return entries(homes, prefix) }

// Named lists the network namespaces whose names start with a prefix.
func Named(prefix string) ([]string, error) { return entries(Dir, prefix) }

// entries lists the names in a directory that start with a prefix; none if the
// directory does not exist.
func entries(dir, prefix string) ([]string, error) {
	all, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("list network namespaces: %w", err)
	}
	var names []string
	for _, e := range all {
		if strings.HasPrefix(e.Name(), prefix) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// DeleteHome removes a namespace's home and all mounts in it. While the namespace has a
// borrowed device, the record of the device stays. Another process may remove the home at the
// same time.
func DeleteHome(name string) error {
	home := Home(name)
	defer os.Remove(homes) // succeeds only if no other home is left
	if _, err := os.Lstat(home); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	mounts, err := mountsBelow(home)
	if err != nil {
		return err
	}
	for _, m := range slices.Backward(mounts) {
		if err := unix.Unmount(m, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil {
			return fmt.Errorf("unmount %s: %w", m, err)
		}
	}
	files, err := os.ReadDir(home)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	errs := []error{err}
	for _, f := range files {
		if f.Name() != loanFile {
			errs = append(errs, os.RemoveAll(filepath.Join(home, f.Name())))
		}
	}
	if err := os.Remove(home); !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, os.ErrNotExist) {
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("remove the home of namespace %s: %w", name, err)
	}
	return nil
}

// mountsBelow lists mount points in a directory, parents first.
func mountsBelow(dir string) ([]string, error) {
	mounts, err := procfs.GetMounts()
	if err != nil {
		return nil, fmt.Errorf("list mounts: %w", err)
	}
	var below []string
	for _, m := range mounts {
		if strings.HasPrefix(m.MountPoint, dir+"/") {
			below = append(below, m.MountPoint)
		}
	}
	return below, nil
}
