package netspace

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"windtunnel/internal/setup"
)

const inside = "WINDTUNNEL_TEST_NETSPACE"

// After a boot, Dir is no mount point. There, namespaces are made together with those of
// `ip netns add`, and all are deleted again.
func TestNamespacesAreDeletedAlsoIfOthersMadeTheDirectoryAMountPoint(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("creating network namespaces needs root")
	}
	ip, err := exec.LookPath("ip")
	if err != nil {
		t.Skip("ip is not installed; get it with: " + setup.Command("ip"))
	}
	if os.Getenv(inside) == "" {
		again := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
		again.Env = append(os.Environ(), inside+"=1")
		again.SysProcAttr = &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNS}
		if out, err := again.CombinedOutput(); err != nil {
			t.Errorf("in a mount namespace with an empty /run: %v\n%s", err, out)
		}
		return
	}
	if err := unix.Mount("tmpfs", "/run", "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	const each = 10
	name := func(maker string, i int) string { return fmt.Sprintf("wt-%s-%d", maker, i) }
	var makers sync.WaitGroup
	for i := range each {
		makers.Go(func() {
			ns, err := Create(name("create", i))
			if err != nil {
				t.Error(err)
				return
			}
			ns.Close()
		})
		makers.Go(func() {
			if out, err := exec.Command(ip, "netns", "add", name("ip", i)).CombinedOutput(); err != nil {
				t.Errorf("ip netns add: %v: %s", err, out)
			}
		})
	}
	makers.Wait()
	if made := names(t); len(made) != 2*each {
		t.Errorf("there are %d namespaces, want %d: %v", len(made), 2*each, made)
	}
	for i := range each {
		if err := Delete(name("create", i)); err != nil {
			t.Error(err)
		}
		if out, err := exec.Command(ip, "netns", "delete", name("ip", i)).CombinedOutput(); err != nil {
			t.Errorf("ip netns delete: %v: %s", err, out)
		}
	}
	if left := names(t); len(left) > 0 {
		t.Errorf("these namespaces are left, want none: %v", left)
	}
	if err := Delete(name("create", 0)); err != nil {
		t.Errorf("deleting a namespace that is already deleted: %v; want no error", err)
	}
}

func names(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(Dir)
	if err != nil {
		t.Fatal(err)
	}
	all := make([]string, len(entries))
	for i, e := range entries {
		all[i] = e.Name()
	}
	slices.Sort(all)
	return all
}
