package netspace

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
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
	must.Succeed(t, unix.Mount("tmpfs", "/run", "tmpfs", 0, ""))
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
	must.Succeed(t, Delete(name("create", 0)))
}

func names(t *testing.T) []string {
	t.Helper()
	entries := must.Get(os.ReadDir(Dir))(t)
	all := make([]string, len(entries))
	for i, e := range entries {
		all[i] = e.Name()
	}
	slices.Sort(all)
	return all
}

// A client that may add ports can use any path of the node as attach.netns.
func TestOpenRefusesFilesThatAreNotNamespaces(t *testing.T) {
	dir := t.TempDir()
	fifo, socket := filepath.Join(dir, "fifo"), filepath.Join(dir, "socket")
	must.Succeed(t, unix.Mkfifo(fifo, 0o600))
	l := must.Get(net.Listen("unix", socket))(t)
	defer l.Close()
	link := filepath.Join(dir, "link")
	must.Succeed(t, os.Symlink(fifo, link))
	for _, path := range []string{fifo, socket, link, dir, os.Args[0], "/dev/null", "/dev/tty", "/proc/self/status", "/proc/self/ns"} {
		refused(t, path)
	}
	if _, err := Open(filepath.Join(dir, "missing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file gives the error %v", err)
	}
	ns := must.Get(Open("/proc/self/ns/net"))(t)
	ns.Close()
}

// refused checks that Open returns without a namespace.
func refused(t *testing.T, path string) {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		_, err := Open(path)
		done <- err
	}()
	select {
	case err := <-done:
		if !errors.Is(err, ErrOther) {
			t.Errorf("%s gives the error %v, want %v", path, err, ErrOther)
		}
	case <-time.After(20 * time.Second):
		t.Errorf("%s holds its caller", path)
	}
}

// If the server of a FUSE file system does not answer, each path lookup there blocks.
func TestOpenDoesNotWaitForAFileSystemWithoutAnAnswer(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting a file system needs root")
	}
	server, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		t.Skip(err)
	}
	defer server.Close()
	dir := t.TempDir()
	if err := unix.Mount("silent", dir, "fuse", 0, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", server.Fd())); err != nil {
		t.Skipf("cannot mount a FUSE file system: %v", err)
	}
	defer func() {
		server.Close() // ends the calls that wait
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	}()
	silent := filepath.Join(dir, "x")
	for range 2 * maxSilent { // a second call for a path does not wait
		if _, err := Open(silent); err == nil || !strings.Contains(err.Error(), "does not answer") {
			t.Fatalf("a silent file system gives the error %v", err)
		}
	}
	name := fmt.Sprintf("nstest-%d", os.Getpid())
	ns := must.Get(Create(name))(t)
	ns.Close()
	defer Delete(name)
	var wait sync.WaitGroup
	for i := range maxSilent { // many such paths must not block other ports
		wait.Go(func() { Open(fmt.Sprint(silent, i)) })
	}
	wait.Wait()
	if _, err := Open(silent + "-last"); err == nil {
		t.Error("a silent path opens")
	}
	for _, path := range []string{filepath.Join(Dir, name), "/proc/self/ns/net", fmt.Sprintf("/proc/%d/ns/net", os.Getppid())} {
		if ns, err = Open(path); err != nil {
			t.Errorf("beside many silent paths: %v", err)
			continue
		}
		ns.Close()
	}
}

func TestTheCurrentNamespaceIsThatOfTheThread(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("creating network namespaces needs root")
	}
	const name = "wt-current"
	ns := must.Get(Create(name))(t)
	t.Cleanup(func() {
		ns.Close()
		if err := Delete(name); err != nil {
			t.Error(err)
		}
	})
	isCurrent := func() bool {
		current, err := Current()
		if err != nil {
			t.Error(err)
			return false
		}
		defer current.Close()
		return current.Equal(ns)
	}
	if isCurrent() {
		t.Error("the test runs in the new namespace")
	}
	if err := OwnThread(func() error {
		if err := netns.Set(ns); err != nil {
			return err
		}
		if !isCurrent() {
			t.Error("a thread in the new namespace has another one")
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	h := must.Get(Links(ns))(t)
	defer h.Close()
	if links, err := h.LinkList(); err != nil || len(links) != 1 || links[0].Attrs().Name != "lo" {
		t.Errorf("a new namespace has the devices %v (%v), want lo", links, err)
	}
}

// A process that is killed while it creates or deletes a namespace leaves its file without a mount.
func TestANameWithoutANamespaceIsDeleted(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("creating network namespaces needs root")
	}
	name := fmt.Sprint("wt-half-", os.Getpid())
	must.Succeed(t, mountDir())
	must.Succeed(t, os.WriteFile(filepath.Join(Dir, name), nil, 0o444))
	for range 2 { // the second time there is nothing to delete
		must.Succeed(t, Delete(name))
	}
	if _, err := os.Lstat(filepath.Join(Dir, name)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file of the name is left: %v", err)
	}
}
