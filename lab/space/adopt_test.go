package space

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
)

// otherHeld is another namespace, and a path to it that is not its name.
func otherHeld(t *testing.T) (s *Space, path string) {
	t.Helper()
	s = fresh(t, "other")
	return s, fmt.Sprintf("/proc/self/fd/%d", int(s.NS))
}

func boundInode(t *testing.T, name string) uint32 {
	t.Helper()
	var st unix.Stat_t
	must.Succeed(t, unix.Stat(filepath.Join(Dir, name), &st))
	return uint32(st.Ino)
}

func inodeOf(t *testing.T, s *Space) uint32 {
	t.Helper()
	return must.Get(s.Inode())(t)
}

// Whoever has the Space works in the adopted namespace from then on: by its
// handles, by its name, and in its sysfs.
func TestAnAdoptedNamespaceReplacesTheFormerOne(t *testing.T) {
	s := fresh(t, "adopts")
	other, path := otherHeld(t)
	former := inodeOf(t, s)
	must.Succeed(t, s.Pair(Veth{Name: "before", PeerName: "before1", MTU: 1500}, s))
	must.Get(s.ReadSysfs("before/mtu"))(t)
	must.Succeed(t, s.Sysctl("net.ipv4.ip_forward", "1"))
	must.Succeed(t, other.Pair(Veth{Name: "inside", PeerName: "inside1", MTU: 1400}, other))
	must.Succeed(t, s.Adopt(path))
	want := inodeOf(t, other)
	if want == former {
		t.Fatal("the two namespaces are one")
	}
	must.Equal(t, want, inodeOf(t, s))
	must.Equal(t, want, boundInode(t, s.Name))
	if mtu, err := s.ReadSysfs("inside/mtu"); err != nil || mtu != "1400" {
		t.Errorf("the MTU of the adopted namespace's device is %q (%v)", mtu, err)
	}
	if _, err := s.Link("before"); err == nil {
		t.Error("a device of the former namespace is still seen")
	}
	must.Succeed(t, s.Address("inside", netip.MustParsePrefix("10.9.8.7/24")))
	if got := s.Settings(); got.Sysctls["net.ipv4.ip_forward"] != "" {
		t.Errorf("what was set in the former namespace is still recorded: %v", got)
	}
	var forwards []byte
	err := s.Do(func() (err error) {
		forwards, err = os.ReadFile("/proc/sys/net/ipv4/ip_forward")
		return err
	})
	if err != nil || strings.TrimSpace(string(forwards)) != "0" {
		t.Errorf("ip_forward is %q (%v), want the adopted namespace's 0", forwards, err)
	}
}

// Removing the name removes nothing but the name: whoever made the adopted
// namespace still has it.
func TestDeletingTheNameOfAnAdoptedNamespaceLeavesItsFile(t *testing.T) {
	s := fresh(t, "adopts")
	other, path := otherHeld(t)
	must.Succeed(t, s.Adopt(path))
	must.Succeed(t, Delete(s.Name))
	if _, err := os.Lstat(filepath.Join(Dir, s.Name)); !os.IsNotExist(err) {
		t.Errorf("the name is still there: %v", err)
	}
	must.Equal(t, inodeOf(t, other), boundInode(t, other.Name))
}

func TestAFileThatIsNotANamespaceIsNotAdopted(t *testing.T) {
	s := fresh(t, "adopts")
	before := inodeOf(t, s)
	plain := filepath.Join(t.TempDir(), "plain")
	must.Succeed(t, os.WriteFile(plain, nil, 0o600))
	for path, say := range map[string]string{plain: "not a namespace", "/nowhere/at/all": "no such file"} {
		err := s.Adopt(path)
		must.Fail(t, err, say, path)
	}
	must.Equal(t, before, inodeOf(t, s))
	must.Equal(t, before, boundInode(t, s.Name))
	own := must.Get(Open(""))(t)
	defer own.Close()
	if err := own.Adopt("/proc/self/ns/net"); err == nil {
		t.Error("the process's own namespace became another")
	}
}
