package main

import (
	"syscall"
	"testing"

	"windtunnel/internal/must"
)

func TestAClosedTerminalEndsARunAndRemovesItsNamespaces(t *testing.T) {
	h := newHome(t)
	cmd := h.untilTrials(1, "run", "slow.yaml", "--gates", "warn")
	must.Succeed(t, cmd.Process.Signal(syscall.SIGHUP))
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 130 {
		t.Errorf("the run ended with %v, want exit status 130", err)
	}
	if left := leftovers(t); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
