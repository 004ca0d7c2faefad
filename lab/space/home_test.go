package space

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/lab/parallel"
)

func TestANamespacesHomeIsDeletedWithItAndItsMounts(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: makes a network namespace and mounts")
	}
	name := fmt.Sprintf("wt-home%d", os.Getpid())
	s := must.Get(Create(name))(t)
	defer Delete(name)
	defer s.Close()
	deep := filepath.Join(Home(name), "a", "b")
	must.Succeed(t, os.MkdirAll(deep, 0o700))
	for _, dir := range []string{filepath.Dir(deep), deep} {
		must.Succeed(t, os.MkdirAll(dir, 0o700))
		if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
			t.Skipf("mounting a tmpfs: %v", err)
		}
	}
	must.Succeed(t, Delete(name))
	if _, err := os.Lstat(Home(name)); !os.IsNotExist(err) {
		t.Errorf("the home is still there: %v", err)
	}
	if left, err := mountsBelow(Home(name)); err != nil || len(left) > 0 {
		t.Errorf("mounts left: %v, %v", left, err)
	}
}

func TestAHomeCanBeRemovedByTwoProcesses(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: makes directories in " + homes)
	}
	name := fmt.Sprintf("wt-twice%d", os.Getpid())
	for range 200 {
		must.Succeed(t, os.MkdirAll(filepath.Join(Home(name), "a", "b"), 0o700))
		must.Succeed(t, parallel.Each([]int{0, 1}, func(int, int) error { return DeleteHome(name) }))
	}
}
