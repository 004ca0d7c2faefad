package results

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

func TestARunWhoseProcessIsGoneWasInterrupted(t *testing.T) {
	other := exec.Command("sleep", "1000")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	by := engine(other.Process.Pid)
	if by == "" || actualStatus(sample.Running, by) != sample.Running {
		t.Errorf("while process %q runs its run is %s", by, actualStatus(sample.Running, by))
	}
	other.Process.Kill()
	waitForZombie(t, other.Process.Pid)
	if got := actualStatus(sample.Running, by); got != sample.Stopped {
		t.Errorf("of a killed process that its parent has not waited for: %s", got)
	}
	other.Wait()
	boot, rest, _ := strings.Cut(engine(os.Getpid()), " ")
	pid, _, _ := strings.Cut(rest, " ")
	for _, by := range []string{by, "", "nonsense", "another-boot " + rest, boot + " " + pid + " 1"} {
		if got := actualStatus(sample.Running, by); got != sample.Stopped {
			t.Errorf("engine %q: %s", by, got)
		}
	}
	if got := actualStatus(sample.Complete, ""); got != sample.Complete {
		t.Errorf("a complete run is %s", got)
	}
}

// waitForZombie waits until a process has ended.
func waitForZombie(t *testing.T, pid int) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); engine(pid) != ""; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("process %d was killed and does not end", pid)
		}
	}
}

func TestARunKeepsItsOptions(t *testing.T) {
	s, err := Open(t.TempDir()+"/s.db", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	run := sample.Run{ID: "r", Started: time.Now(), Status: sample.Running, Options: sample.Options{ProfileRate: 99, ProfileBlocks: 3}}
	if err := s.CreateRun(run, suite.Plan{}); err != nil {
		t.Fatal(err)
	}
	run.Options.Lenient = true
	if err := s.UpdateRun(run); err != nil {
		t.Fatal(err)
	}
	d, err := s.Load("r")
	if err != nil || d.Run.Options != run.Options || d.Run.Status != sample.Running {
		t.Errorf("%+v (%v)", d, err)
	}
}
