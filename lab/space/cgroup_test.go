package space

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"windtunnel/internal/must"
)

// group makes a control group in a hierarchy that the machine has.
func group(t *testing.T, name string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("making control groups needs root")
	}
	for _, hierarchy := range []string{"/freezer", "/unified", ""} {
		root := cgroups + hierarchy
		if _, err := os.Stat(filepath.Join(root, "cgroup.procs")); err != nil {
			continue
		}
		if err := os.MkdirAll(filepath.Join(root, Cgroup(name), "a", "b"), 0o755); err != nil {
			t.Skipf("making a control group: %v", err)
		}
		return filepath.Join(root, Cgroup(name))
	}
	t.Skip("no control groups are mounted in " + cgroups)
	return ""
}

func TestControlGroupsAreRemovedWithTheirChildren(t *testing.T) {
	name := fmt.Sprintf("wt-cg%d", os.Getpid())
	other := group(t, name+"other")
	g := group(t, name)
	must.Succeed(t, DeleteCgroups(name))
	if _, err := os.Stat(g); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", g, err)
	}
	if _, err := os.Stat(other); err != nil {
		t.Errorf("another's control group is gone: %v", err)
	}
	for range 2 { // what is gone already is no error
		if err := DeleteCgroups(name + "other"); err != nil {
			t.Error(err)
		}
	}
}

func TestAControlGroupWithALivingProcessIsNamed(t *testing.T) {
	name := fmt.Sprintf("wt-cgl%d", os.Getpid())
	g := group(t, name)
	sleeper := exec.Command("sleep", "60")
	must.Succeed(t, sleeper.Start())
	end := func() {
		sleeper.Process.Kill()
		sleeper.Wait()
	}
	defer end()
	member := filepath.Join(g, "a", "b", "cgroup.procs")
	if err := os.WriteFile(member, fmt.Append(nil, sleeper.Process.Pid), 0); err != nil {
		DeleteCgroups(name)
		t.Skipf("putting a process into a control group: %v", err)
	}
	must.Fail(t, DeleteCgroups(name), g)
	end()
	must.Succeed(t, DeleteCgroups(name))
}
