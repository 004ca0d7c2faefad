package space

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

const homes = "/run/windtunnel"

// Home is a directory for the files of what runs in a namespace: sockets, state,
// mounts of its own. Whoever needs it makes it; Delete removes it with the
// namespace.
func Home(name string) string { return filepath.Join(homes, name) }

// Homes lists the namespaces whose names start so and that have a home; the
// namespaces themselves may be gone.
func Homes(prefix string) ([]string, error) {
	entries, err := os.ReadDir(homes)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list what runs in network namespaces: %w", err)
	}
	var names []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// DeleteHome removes a namespace's home and what is mounted in it.
func DeleteHome(name string) error {
	home := Home(name)
	defer os.Remove(homes) // the last one goes with it
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
	if err := os.RemoveAll(home); err != nil {
		return fmt.Errorf("remove what ran in namespace %s: %w", name, err)
	}
	return nil
}

// mountsBelow lists mount points in a directory, parents first.
func mountsBelow(dir string) ([]string, error) {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("list mounts: %w", err)
	}
	var below []string
	for line := range strings.Lines(string(table)) {
		if f := strings.Fields(line); len(f) > 4 && strings.HasPrefix(f[4], dir+"/") { // proc(5): the fifth is the mount point
			below = append(below, f[4])
		}
	}
	return below, nil
}
