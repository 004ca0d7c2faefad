package netns

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/lab/agent"
	"windtunnel/lab/space"
	"windtunnel/lab/testbed"
)

// standAndWait is the victim: a testbed with a program running in it, until
// somebody kills it.
func standAndWait() error {
	cpus, err := usableCPUs()
	if err != nil {
		return err
	}
	x := &Executor{CPUs: cpus, Agent: self("agent"), Line: self("line")}
	ctx := context.Background()
	tb, err := x.up(ctx, testbed.Spec{ID: os.Getenv("WT_TEST_ID"), Nodes: 2, Fabric: delayed(time.Millisecond)})
	if err != nil {
		return err
	}
	p, err := tb.nodes[0].agent.Start(ctx, agent.StartArgs{Argv: []string{"sleep", "60"}})
	if err != nil {
		return err
	}
	fmt.Println("standing", p.ID())
	select {}
}

// A killed engine takes its agents and tools with it, and what it leaves is
// found and removed.
func TestNothingIsLeftOfAKilledEngine(t *testing.T) {
	executor(t)
	id := testID(t)
	argv := self("victim")
	victim := exec.Command(argv[0], argv[1:]...)
	victim.Env = append(os.Environ(), "WT_TEST_ID="+id)
	out, err := victim.StdoutPipe()
	must.Succeed(t, err)
	must.Succeed(t, victim.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "standing") {
		t.Fatalf("the victim says %q (%v)", line, err)
	}
	must.Succeed(t, victim.Process.Kill())
	victim.Wait()
	must.EventuallyTrue(t, "the end of the agents and the delay lines", func() bool { return len(children(t)) == 0 })
	names, err := space.Named(space.TestbedPrefix(id))
	if err != nil || len(names) != 3 {
		t.Fatalf("the killed engine left %v (%v); two nodes and a wire were to be expected", names, err)
	}
	must.Get(space.Clean(space.TestbedPrefix(id)))(t)
	if names, err := space.Named(space.TestbedPrefix(id)); err != nil || len(names) != 0 {
		t.Errorf("still there: %v (%v)", names, err)
	}
}

// children lists the processes that carry the victim's id in their
// environment.
func children(t *testing.T) (pids []string) {
	t.Helper()
	files := must.Get(filepath.Glob("/proc/[0-9]*/environ"))(t)
	for _, f := range files {
		env, _ := os.ReadFile(f)
		if strings.Contains(string(env), "WT_TEST_ID="+testID(t)) {
			pids = append(pids, filepath.Base(filepath.Dir(f)))
		}
	}
	return pids
}

// A process that lives in a namespace of the lab's and does not belong to
// anybody any more is ended too.
func TestCleanEndsWhatRunsInTheNamespaces(t *testing.T) {
	tb := up(t, executor(t), 2, fabric(nil))
	orphan := exec.Command("sleep", "60")
	must.Succeed(t, startOn(tb.nodes[0].space, tb.nodes[0].cpus, orphan))
	ended := make(chan error, 1)
	go func() { ended <- orphan.Wait() }()
	c := must.Get(space.Clean(space.TestbedPrefix(tb.id)))(t)
	if len(c.Namespaces) != 3 || len(c.Processes) != 3 {
		t.Errorf("removed %v and ended %v; 3 namespaces, 2 agents and the orphan were to be expected", c.Namespaces, c.Processes)
	}
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Error("the orphan still runs")
		orphan.Process.Kill()
	}
	forgetAgents(tb)
}

// forgetAgents ends the connections to agents that were killed.
func forgetAgents(tb *Testbed) {
	for _, n := range tb.nodes {
		n.agent.Close()
		<-n.process.Ended
		n.agent, n.process = nil, nil
	}
}

// Control groups that carry a namespace's name go with it.
func TestCleanRemovesTheControlGroupsOfANode(t *testing.T) {
	tb := up(t, executor(t), 2, fabric(nil))
	node := tb.nodes[0].space.Name
	var made []string
	for _, hierarchy := range []string{"/sys/fs/cgroup/freezer", "/sys/fs/cgroup/unified", "/sys/fs/cgroup"} {
		if _, err := os.Stat(filepath.Join(hierarchy, "cgroup.procs")); err != nil {
			continue
		}
		group := filepath.Join(hierarchy, space.Cgroup(node))
		if err := os.MkdirAll(filepath.Join(group, "container"), 0o755); err != nil {
			t.Skipf("making a control group: %v", err)
		}
		made = append(made, group)
	}
	if len(made) == 0 {
		t.Skip("no control groups are mounted in /sys/fs/cgroup")
	}
	if _, err := space.Clean(space.TestbedPrefix(tb.id)); err != nil {
		t.Error(err)
	}
	for _, group := range made {
		if _, err := os.Stat(group); !os.IsNotExist(err) {
			t.Errorf("%s is left: %v", group, err)
		}
	}
	forgetAgents(tb)
}

// What a process in a namespace of the lab's started outside of all of them is
// ended with it, however deep; what has nothing to do with it is not.
func TestCleanEndsWhatTheProcessesStartedElsewhere(t *testing.T) {
	tb := up(t, executor(t), 2, fabric(nil))
	stranger := exec.Command("sleep", "60")
	must.Succeed(t, stranger.Start())
	defer func() {
		stranger.Process.Kill()
		stranger.Wait()
	}()
	// A namespace of its own for each generation, that no name leads to.
	if _, err := exec.LookPath("unshare"); err != nil {
		t.Skip("unshare(1) is not installed")
	}
	shell := exec.Command("sh", "-c", "unshare --net sh -c 'unshare --net sleep 60; true'; true")
	must.Succeed(t, startOn(tb.nodes[0].space, tb.nodes[0].cpus, shell))
	family := waitForFamily(t, shell.Process.Pid, 3) // a shell, its shell, its sleep
	must.Get(space.Clean(space.TestbedPrefix(tb.id)))(t)
	shell.Wait()
	for _, pid := range family {
		if !hasEnded(pid) {
			t.Errorf("process %d still runs", pid)
			syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	if hasEnded(stranger.Process.Pid) {
		t.Error("a process that has nothing to do with the lab was ended")
	}
	forgetAgents(tb)
}

// hasEnded reports whether a process is gone or a zombie.
func hasEnded(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(stat), ") Z ")
}

// waitForFamily waits until a process has so many descendants, itself
// included, and lists them.
func waitForFamily(t *testing.T, pid, many int) (family []int) {
	t.Helper()
	must.EventuallyTrue(t, fmt.Sprintf("the family has %d members", many), func() bool {
		family = []int{pid}
		for i := 0; i < len(family); i++ {
			kids, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", family[i], family[i]))
			for _, k := range strings.Fields(string(kids)) {
				var kid int
				fmt.Sscan(k, &kid)
				family = append(family, kid)
			}
		}
		return len(family) == many
	})
	return family
}

// Files and mounts whose namespace somebody else removed are found by
// themselves.
func TestAHomeWithoutANamespaceIsCleanedAway(t *testing.T) {
	executor(t)
	name := space.TestbedPrefix(testID(t)) + "gone"
	inner := filepath.Join(space.Home(name), "inner")
	must.Succeed(t, os.MkdirAll(inner, 0o700))
	must.Succeed(t, unix.Mount("tmpfs", inner, "tmpfs", 0, "size=64k"))
	if _, err := space.Clean(name); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(space.Home(name)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the home is still there: %v", err)
	}
}

// A suite's name can be the beginning of another suite's name.
func TestCleanLeavesTheTestbedsOfOtherSuites(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("making network namespaces needs root")
	}
	const removed = "quick"
	others := []string{"quick-overlay", "quick-a", "quick_overlay", "quick._overlay", "quick..overlay"}
	for _, suite := range append(others, removed) {
		name := nodeSpace(space.LabID(suite), 0)
		s := must.Get(space.Create(name))(t)
		s.Close()
		t.Cleanup(func() { space.Delete(name) })
	}
	if c, err := space.Clean(space.TestbedPrefix(space.LabID(removed))); err != nil || !slices.Equal(c.Namespaces, []string{nodeSpace(space.LabID(removed), 0)}) {
		t.Errorf("Clean removed %v (%v), want only the testbed of %s", c.Namespaces, err, removed)
	}
	if names, err := space.Named(space.TestbedPrefix(space.LabID("quick-overlay"))); err != nil || len(names) != 1 {
		t.Errorf("the namespaces of quick-overlay: %v (%v), want one", names, err)
	}
}
