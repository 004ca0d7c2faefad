package netdev

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/internal/netspace"
)

// asAlone is the environment variable of a test program in a network namespace that only it has.
const asAlone = "VROUTER_TEST_ALONE"

// The namespace of an agent's process may be another than the node's and that of process 1, and the
// agent may lack the right to look at process 1.
func TestAWorkloadDoesNotUseTheAgentsNamespace(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	if os.Getenv(asAlone) == "" {
		again := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
		again.Env = append(os.Environ(), asAlone+"=1")
		again.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS}
		if out, err := again.CombinedOutput(); err != nil {
			t.Errorf("the test in another namespace: %v\n%s", err, out)
		}
		return
	}
	node := must.Get(Open("/proc/1/ns/net"))(t)
	defer node.Close()
	refused := func(path, why string) {
		t.Helper()
		if s, err := OpenWorkload(path, node); err == nil {
			s.Close()
			t.Errorf("a workload may use %s", path)
		} else if !strings.Contains(err.Error(), why) {
			t.Errorf("%s is refused with %v, want %q", path, err, why)
		}
	}
	refused("/proc/self/ns/net", "must not use")
	refused("/proc/1/ns/net", "must not use")

	must.Succeed(t, unix.Mount("tmpfs", "/proc/1", "tmpfs", 0, ""))
	refused("/proc/self/ns/net", "must not use")
	initial := fmt.Sprintf("/proc/self/fd/%d", node.Ns)
	node = newSpace(t)
	refused(initial, "must not use")
	w := newSpace(t)
	if err := w.checkWorkload(node); err != nil {
		t.Errorf("a workload's own namespace is refused: %v", err)
	}
}

func newSpace(t testing.TB) *Space {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	var s *Space
	err := netspace.OwnThread(func() (err error) {
		if _, err = netns.New(); err == nil {
			s, err = Open("")
		}
		return err
	})
	must.Succeed(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}
