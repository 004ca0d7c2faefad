package results

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"windtunnel/internal/must"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

func TestARunWhoseProcessHasEndedWasInterrupted(t *testing.T) {
	other := exec.Command("sleep", "1000")
	must.Succeed(t, other.Start())
	by := engine(other.Process.Pid)
	if by == "" || !alive(by) {
		t.Errorf("process %q runs and counts as ended", by)
	}
	other.Process.Kill()
	waitForZombie(t, other.Process.Pid)
	if alive(by) {
		t.Errorf("a killed process that its parent has not waited for counts as running")
	}
	other.Wait()
	boot, rest, _ := strings.Cut(engine(os.Getpid()), " ")
	pid, _, _ := strings.Cut(rest, " ")
	for _, by := range []string{by, "", "nonsense", "another-boot " + rest, boot + " " + pid + " 1"} {
		if alive(by) {
			t.Errorf("engine %q counts as running", by)
		}
		if got := measured(func(_, by string) bool { return alive(by) }).status(sample.Running, "r", by); got != sample.Stopped {
			t.Errorf("the run of engine %q is %s, want stopped", by, got)
		}
	}
	must.Equal(t, sample.Complete, measured(func(_, _ string) bool { return false }).status(sample.Complete, "r", ""))
}

// waitForZombie waits until a process has ended.
func waitForZombie(t *testing.T, pid int) {
	t.Helper()
	must.EventuallyTrue(t, "the killed process has ended", func() bool { return engine(pid) == "" })
}

func TestARunKeepsItsOptions(t *testing.T) { onEach(t, testARunKeepsItsOptions) }

func testARunKeepsItsOptions(t *testing.T, b backend) {
	s := b.fresh(t)
	run := sample.Run{ID: "r", Started: time.Now(), Status: sample.Running, Options: sample.Options{ProfileRate: 99, ProfileBlocks: 3}}
	must.Succeed(t, s.CreateRun(run, suite.Plan{}))
	run.Options.Lenient = true
	must.Succeed(t, s.UpdateRun(run))
	d := must.Get(s.Load("r"))(t)
	if diff := cmp.Diff(run.Options, d.Run.Options); diff != "" || d.Run.Status != sample.Running {
		t.Errorf("the run is %s, want running; its options (−want +got):\n%s", d.Run.Status, diff)
	}
}
