package report

import (
	"slices"
	"strings"
	"testing"

	"windtunnel/lab/sample"
)

func TestServersOfAllPairsStartBeforeTheClients(t *testing.T) {
	lines := byHand("my suite", "bridge/x", []sample.Command{
		{Role: "server", On: "b/c1", Argv: []string{"netserver", "-p", "4000"}},
		{Role: "client1", On: "a/c1", Argv: []string{"netperf", "-t", "A B"}},
		{Role: "server 2", On: "b/c2", Argv: []string{"netserver", "-p", "4000"}},
		{Role: "client1 2", On: "a/c2", Argv: []string{"netperf", "$(rm)"}},
	})
	want := []string{
		"windtunnel lab up 'my suite' --scenario bridge/x",
		"windtunnel lab exec 'my suite' b/c1 -- netserver -p 4000 &  # server",
		"windtunnel lab exec 'my suite' b/c2 -- netserver -p 4000 &  # server 2",
		"sleep 1",
		"windtunnel lab exec 'my suite' a/c1 -- netperf -t 'A B' & clients=\"$clients $!\"  # client1",
		"windtunnel lab exec 'my suite' a/c2 -- netperf '$(rm)'  # client1 2",
		"wait $clients",
		"windtunnel lab down 'my suite'",
	}
	if !slices.Equal(lines, want) {
		t.Errorf("the lines are\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
}
