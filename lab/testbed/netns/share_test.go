package netns

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"windtunnel/lab/agent"
	"windtunnel/lab/space"
	"windtunnel/lab/suite"
)

// A program that computes for a second gets the node's share of it.
func TestANodesProgramsGetItsShareOfTheCPUTime(t *testing.T) {
	x := executor(t)
	if err := space.CanLimitCPU(); err != nil {
		t.Skip(err)
	}
	const share, span = 0.25, 2
	tb := up(t, x, 2, fabric(func(f *suite.Fabric) { f.CPUShare, f.CPUs = share, 1 }))
	p, err := tb.nodes[1].agent.Start(context.Background(), agent.StartArgs{Argv: []string{"/bin/sh", "-c", fmt.Sprintf("timeout %d sh -c 'while :; do :; done'; times", span)}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	// The last line has the user and system time of ended children: 0m0.25s 0m0.00s.
	lines := strings.Split(strings.TrimSpace(finish(t, ctx, p)), "\n")
	used := time.Duration(0)
	for _, text := range strings.Fields(lines[len(lines)-1]) {
		d, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		used += d
	}
	got := used.Seconds() / span
	t.Logf("a program that computes used %.1f %% of a CPU", 100*got)
	if got > 1.15*share || got < 0.4*share { // other programs may use the CPU too
		t.Errorf("a program used %.1f %% of a CPU, want %.0f %%", 100*got, 100*share)
	}
}
