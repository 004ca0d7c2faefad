package agent

import (
	"context"
	"io"
	"os"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/internal/testprogram"
	"windtunnel/lab/meter"
	"windtunnel/lab/profile"
	"windtunnel/lab/profile/folded"
)

type bothWays struct {
	io.Reader
	io.WriteCloser
}

// A program that the agent started is the generator; the profile comes over
// the pipe whole.
func TestAnAgentProfilesWhatItStarted(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("sampling whole CPUs needs root")
	}
	toAgent, fromClient := io.Pipe()
	toClient, fromAgent := io.Pipe()
	served := make(chan error, 1)
	go func() { served <- Serve("test", toAgent, fromAgent, nil) }()
	c := NewClient("n", bothWays{toClient, fromClient})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	}()
	_, err := c.ProfileStop(ctx, profile.Window{})
	must.Fail(t, err, "the CPU profiler does not run")
	hello := must.Get(c.Hello(ctx))(t)
	busy := must.Get(c.Start(ctx, StartArgs{Argv: []string{"/bin/sh", "-c", "while :; do :; done"}}))(t)
	for range 2 { // the first is given up
		must.Succeed(t, c.ProfileStart(ctx, profile.Config{Node: "n", CPUs: hello.CPUs}))
	}
	from := must.Get(meter.Now())(t)
	testprogram.AwaitCPUTime(t, busy.PID(), 600*time.Millisecond)
	to := must.Get(meter.Now())(t)
	p := must.Get(c.ProfileStop(ctx, profile.Window{From: from, To: to}))(t)
	if p.Node != "n" || len(p.CPUs) != len(hello.CPUs) || p.Seconds < 0.5 {
		t.Errorf("profile of node %s, CPUs %v, %g s; want node n, CPUs %v, at least 0.5 s", p.Node, p.CPUs, p.Seconds, hello.CPUs)
	}
	for _, r := range folded.Categories(p) {
		if r.Name == folded.Generator && r.Samples > 20 {
			return
		}
	}
	t.Errorf("a busy shell is not the generator: %+v", folded.Categories(p))
}
