package main

import (
	"syscall"
	"testing"
)

func TestAClosedTerminalEndsARunAndRemovesItsNamespaces(t *testing.T) {
	h := newHome(t)
	cmd := h.untilTrials(1, "run", "slow.yaml", "--gates", "warn")
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 130 {
		t.Errorf("the run ended with %v, want exit status 130", err)
	}
	if left := leftovers(t); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
