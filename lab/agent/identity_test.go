package agent

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/lab/space"
)

func TestANodeIsKnownByItsNamespacesAndItsAgent(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("making network namespaces needs root")
	}
	node, container := made(t, "n"), made(t, "c")
	s := &Service{node: node, containers: map[string]*space.Space{"c1": container}}
	var got Identity
	must.Succeed(t, s.Identity(struct{}{}, &got))
	want := Identity{PID: os.Getpid(), Namespaces: []uint32{inode(t, filepath.Join(space.Dir, node.Name)), inode(t, filepath.Join(space.Dir, container.Name))}}
	must.Equal(t, want, got)
	if got.Namespaces[0] == got.Namespaces[1] {
		t.Error("the node and its container are known by the same inode")
	}
}

// made is a namespace that is gone after the test.
func made(t *testing.T, name string) *space.Space {
	t.Helper()
	s := must.Get(space.Create("wt-id" + name + "-" + strconv.Itoa(os.Getpid())))(t)
	t.Cleanup(func() {
		if err := errors.Join(s.Close(), space.Delete(s.Name)); err != nil {
			t.Error(err)
		}
	})
	return s
}

func inode(t *testing.T, path string) uint32 {
	t.Helper()
	var st unix.Stat_t
	must.Succeed(t, unix.Stat(path, &st))
	return uint32(st.Ino)
}
