package netns

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/lab/agent"
	"windtunnel/lab/space"
	"windtunnel/lab/suite"
)

// A program that computes gets the node's share of the CPU time, if the node's agent starts
// it or `windtunnel lab exec`.
func TestANodesProgramsGetItsShareOfTheCPUTime(t *testing.T) {
	x := executor(t)
	if err := space.CanLimitCPU(); err != nil {
		t.Skip(err)
	}
	const share, span = 0.25, 2
	tb := up(t, x, 2, fabric(func(f *suite.Fabric) { f.CPUShare, f.CPUs = share, 1 }))
	argv := []string{"/bin/sh", "-c", fmt.Sprintf("sleep 0.1; timeout %d sh -c 'while :; do :; done'; times", span)}
	for how, run := range map[string]func() string{
		"by the agent": func() string {
			p := must.Get(tb.nodes[1].agent.Start(context.Background(), agent.StartArgs{Argv: argv}))(t)
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			return finish(t, ctx, p)
		},
		"by Exec": func() string {
			var out strings.Builder
			cmd := exec.Command(argv[0], argv[1:]...)
			cmd.Stdout = &out
			must.Succeed(t, Exec(tb.id, nodeName(1), x.CPUs, cmd, nil))
			return out.String()
		},
	} {
		// The last line has the user and system time of ended children: 0m0.25s 0m0.00s.
		lines := strings.Split(strings.TrimSpace(run()), "\n")
		used := time.Duration(0)
		for _, text := range strings.Fields(lines[len(lines)-1]) {
			d := must.Get(time.ParseDuration(text))(t)
			used += d
		}
		got := used.Seconds() / span
		t.Logf("a program that is started %s and computes used %.1f %% of a CPU", how, 100*got)
		if got > 1.15*share || got < 0.4*share { // other programs may use the CPU too
			t.Errorf("a program that is started %s used %.1f %% of a CPU, want %.0f %%", how, 100*got, 100*share)
		}
	}
}
