package experiment

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/lab/meter/foreign"
	"windtunnel/lab/sample"
	"windtunnel/lab/testbed/netns"
)

func TestAGateThatOnlyWarnsLeavesTheTrialToCount(t *testing.T) {
	s := sample.Sample{Gates: []sample.Gate{{Name: sample.Steal}}, Flags: []sample.Gate{{Name: sample.Unsteady}}}
	warnOnly(&s)
	if !s.Counts() || len(s.Flags) != 2 || s.Flags[0].Name != sample.Steal {
		t.Errorf("sample %+v", s)
	}
}

// watched is an experiment of one trial that sees what other programs do.
func watched(t *testing.T) (*notebook, *Experiment) {
	t.Helper()
	n := &notebook{}
	e := lab(t, n, scenario("bridge", nil))
	m, err := foreign.Open(e.Executor.(*netns.Executor).CPUs)
	if err != nil {
		t.Skipf("foreign CPU time cannot be metered here: %v", err)
	}
	m.Close()
	e.Lenient = false
	return n, e
}

// A program that has nothing to do with the experiment, on the receiver's CPU,
// marks the trial, and is named.
func TestABusyProgramMarksTheTrialAndIsNamed(t *testing.T) {
	n, e := watched(t)
	n.up = func(b *Bench) {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		t.Cleanup(cancel)
		hog := exec.CommandContext(ctx, "sh", "-c", "while :; do :; done")
		must.Succeed(t, hog.Start())
		t.Cleanup(func() { cancel(); hog.Wait() })
		// It prevails over what else the machine runs, and not over the trial.
		must.Succeed(t, unix.Setpriority(unix.PRIO_PROCESS, hog.Process.Pid, -5))
		var set unix.CPUSet
		set.Set(b.Pairs[0].Receiver.Node.CPUs()[0])
		must.Succeed(t, unix.SchedSetaffinity(hog.Process.Pid, &set))
	}
	if err := e.Run(context.Background()); !errors.Is(err, ErrNoneCounts) {
		t.Fatalf("with its only trial marked the run ended with %v", err)
	}
	s := n.samples[0]
	if !s.OK() || s.Counts() {
		t.Fatalf("failure %v, gates %v", s.Failure, s.Gates)
	}
	for _, g := range s.Gates {
		if g.Name != sample.ForeignCPU || !strings.Contains(g.Message, "receiver") {
			continue
		}
		if g.Value < 10 || !strings.Contains(g.Message, "most of it sh") {
			t.Errorf("gate %+v", g)
		}
		if s.Metrics[sample.ReceiverForeignCPU] < 10 {
			t.Errorf("metric %v", s.Metrics[sample.ReceiverForeignCPU])
		}
		return
	}
	t.Errorf("gates %v", s.Gates)
}

// What the lab itself starts is not foreign: in quiet a trial passes this gate. The delay line of a link runs on
// a node's CPU where no other is free.
func TestTheExperimentsOwnProgramsAreNotForeign(t *testing.T) {
	for _, delay := range []time.Duration{0, 100 * time.Microsecond} {
		n, e := watched(t)
		e.Plan.Scenarios[0].Fabric.Delay = delay
		if err := e.Run(context.Background()); err != nil && !errors.Is(err, ErrNoneCounts) {
			t.Fatal(err)
		}
		for _, g := range n.samples[0].Gates {
			if g.Name == sample.ForeignCPU && (strings.Contains(g.Message, "most of it experiment.test") || strings.Contains(g.Message, "most of it vrouter")) {
				t.Errorf("with a delay of %v: gate %+v", delay, g)
			}
		}
	}
}
