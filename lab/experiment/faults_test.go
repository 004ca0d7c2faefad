package experiment

import (
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

	"windtunnel/internal/must"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// Tools that go wrong in every way: each is a failure of its own kind with the
// reason in words, never a zero.
func TestAFailureOfAToolHasAType(t *testing.T) {
	real, err := exec.LookPath("iperf3")
	if err != nil {
		t.Skip("iperf3 is not installed")
	}
	serve := fmt.Sprintf("case \" $* \" in *' -s '*) exec %s \"$@\";; esac\n", real)
	for name, c := range map[string]struct {
		script string
		kind   sample.FailureKind
		say    string
	}{
		"hangs":                   {serve + "exec sleep 100", sample.ToolHung, "did not end within the planned time"},
		"is killed":               {serve + "kill -9 $$", sample.ToolFailed, "status -1"},
		"prints garbage":          {serve + "echo '}{ 12 Gbit/s'", sample.NoResult, ""},
		"says nothing":            {serve + "exit 0", sample.NoResult, ""},
		"reports an error with 0": {serve + `echo '{"start":{},"intervals":[],"end":{},"error":"unable to connect"}'`, sample.ToolFailed, "unable to connect"},
		"ends with an error":      {serve + "echo no such flag >&2; exit 3", sample.ToolFailed, "no such flag"},
		"has a server that ends":  {"echo cannot bind >&2; exit 1", sample.ToolFailed, "ended with exit status 1 before it listened on port 5001: cannot bind"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			must.Succeed(t, os.WriteFile(filepath.Join(dir, "iperf3"), []byte("#!/bin/sh\n"+c.script+"\n"), 0o755))
			t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
			s := runOne(t, scenario("raw", func(sc *suite.Scenario) { sc.Tool = "iperf3" }))
			if s.OK() {
				t.Fatalf("it yielded %v", s.Metrics)
			}
			if s.Failure.Kind != c.kind || !strings.Contains(s.Failure.Message, c.say) {
				t.Errorf("failure: %v; want %s with %q", s.Failure, c.kind, c.say)
			}
		})
	}
}

// soon is the time within which a trial of one minute must end after its agent was stopped. A busy machine is slow.
const soon = 45 * time.Second

// If an agent is stopped, its trial fails long before the planned end. Afterwards neither the agent nor a program that it
// started is left.
func TestAStoppedAgentFailsItsTrial(t *testing.T) {
	t.Parallel()
	long := scenario("bridge", func(sc *suite.Scenario) { sc.Timing.Duration = time.Minute })
	for side, node := range map[string]int{"sender": 0, "receiver": 1} {
		t.Run(side, func(t *testing.T) {
			t.Parallel()
			n := &notebook{}
			e := lab(t, n, long)
			var bench *Bench
			var pid int
			var stopped time.Time
			n.up = func(b *Bench) { bench = b }
			n.moved = func() {
				if pid == 0 {
					pid = stopAgent(t, bench, node)
					stopped = time.Now()
				}
			}
			must.Succeed(t, e.Run(context.Background()))
			took := time.Since(stopped)
			f := n.samples[0].Failure
			if f == nil || f.Kind != sample.AgentLost || !f.Retryable() || !strings.HasPrefix(f.Message, "node "+string(rune('a'+node))+"'s agent has not answered for 5s") {
				t.Errorf("failure: %v", f)
			}
			if took > soon {
				t.Errorf("the trial failed %v after its agent was stopped", took)
			}
			if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
				t.Errorf("the stopped agent, process %d, is still there (%v)", pid, err)
			}
		})
	}
}

// stopAgent stops a node's agent with SIGSTOP and returns its process ID.
func stopAgent(t *testing.T, b *Bench, node int) int {
	t.Helper()
	h, err := b.Testbed.Nodes()[node].Agent().Hello(context.Background())
	if err == nil {
		err = syscall.Kill(h.PID, syscall.SIGSTOP)
	}
	if err != nil {
		t.Error(err)
	}
	return h.PID
}

// An interrupt while an agent is stopped ends the run with everything removed.
func TestAnInterruptEndsARunWhoseAgentIsStopped(t *testing.T) {
	t.Parallel()
	interrupted := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(context.Background())
	n := &notebook{}
	e := lab(t, n, scenario("bridge", func(sc *suite.Scenario) { sc.Timing.Duration = time.Minute }))
	var bench *Bench
	var at time.Time
	n.up = func(b *Bench) { bench = b }
	n.moved = func() {
		stopAgent(t, bench, 1)
		at = time.Now()
		cancel(interrupted)
	}
	if err := e.Run(ctx); !errors.Is(err, interrupted) {
		t.Errorf("Run returned %v", err)
	}
	if took := time.Since(at); took > soon {
		t.Errorf("it took %v", took)
	}
}

func TestATrialWithAMissingToolIsNotRepeated(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	s := runOne(t, scenario("raw", func(sc *suite.Scenario) { sc.Tool = "iperf3" }))
	if s.OK() || s.Failure.Kind != sample.ToolMissing || s.Failure.Retryable() {
		t.Errorf("failure: %v", s.Failure)
	}
}
