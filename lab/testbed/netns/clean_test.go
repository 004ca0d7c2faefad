package netns

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"windtunnel/lab/agent"
	"windtunnel/lab/testbed"
)

// standAndWait is the victim: a testbed with a program running in it, until
// somebody kills it.
func standAndWait() error {
	cpus, err := usableCPUs()
	if err != nil {
		return err
	}
	x := &Executor{CPUs: cpus, Agent: self("agent")}
	ctx := context.Background()
	tb, err := x.up(ctx, testbed.Spec{ID: os.Getenv("WT_TEST_ID"), Nodes: 2, Fabric: fabric(nil)})
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
	if err != nil {
		t.Fatal(err)
	}
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "standing") {
		t.Fatalf("the victim says %q (%v)", line, err)
	}
	if err := victim.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	victim.Wait()
	names, err := Named(SpacePrefix(id))
	if err != nil || len(names) != 3 {
		t.Fatalf("the killed engine left %v (%v); two nodes and a wire were to be expected", names, err)
	}
	if _, err := Clean(SpacePrefix(id)); err != nil {
		t.Fatal(err)
	}
	if names, err := Named(SpacePrefix(id)); err != nil || len(names) != 0 {
		t.Errorf("still there: %v (%v)", names, err)
	}
	for _, pid := range children(t) {
		t.Errorf("process %s still runs", pid)
	}
}

// children lists the processes that carry the victim's id in their
// environment.
func children(t *testing.T) (pids []string) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
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
	if err := startOn(tb.nodes[0].space, tb.nodes[0].cpus, orphan); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- orphan.Wait() }()
	c, err := Clean(SpacePrefix(tb.id))
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Namespaces) != 3 || len(c.Processes) != 3 {
		t.Errorf("removed %v and ended %v; 3 namespaces, 2 agents and the orphan were to be expected", c.Namespaces, c.Processes)
	}
	select {
	case <-ended:
	case <-time.After(3 * time.Second):
		t.Error("the orphan still runs")
		orphan.Process.Kill()
	}
	for _, n := range tb.nodes { // their agents were killed: that is no news
		n.agent.Close()
		n.cmd.Wait()
		n.agent, n.cmd = nil, nil
	}
}

func TestTheLockIsHeldByOneAndSaysByWhom(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := TakeLock(path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = TakeLock(path)
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("process %d", os.Getpid())) {
		t.Errorf("the second: %v; want an error that names process %d", err, os.Getpid())
	}
	if err := first.Unlock(); err != nil {
		t.Fatal(err)
	}
	second, err := TakeLock(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Unlock(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the lock file is still there: %v", err)
	}
}

func TestALockIsFreeOnceItsHolderWasKilled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	holder := exec.Command("flock", path, "sleep", "60")
	if err := holder.Start(); err != nil {
		t.Skip("flock(1) is not installed: " + err.Error())
	}
	// Asked for by hand: TakeLock would remove the file that flock(1) may just
	// have opened.
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for deadline := time.Now().Add(10 * time.Second); syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil; time.Sleep(10 * time.Millisecond) {
		syscall.Flock(int(file.Fd()), syscall.LOCK_UN)
		if time.Now().After(deadline) {
			t.Fatal("flock(1) never took the lock")
		}
	}
	if _, err := TakeLock(path); err == nil {
		t.Error("a lock that another process holds was given")
	}
	// flock's child holds the lock too: end both.
	kids, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", holder.Process.Pid, holder.Process.Pid))
	for _, k := range strings.Fields(string(kids)) {
		var pid int
		fmt.Sscan(k, &pid)
		syscall.Kill(pid, syscall.SIGKILL)
	}
	holder.Process.Kill()
	holder.Wait()
	for deadline := time.Now().Add(3 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		var l *Lock
		if l, err = TakeLock(path); err == nil {
			l.Unlock()
			return
		}
	}
	t.Error(err)
}
