package e2e

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"windtunnel/vrouter/model"
)

// A command must not wait without end for an agent whose process is stopped.
func TestAStoppedAgentDoesNotHoldACommand(t *testing.T) {
	b := newBed(t, options{})
	x, y := pair(b, model.L3, false, model.MPLSoUDP)
	n := b.nodes[0]
	if err := n.agent.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"status"}, {"vif", "list"}, {"rt", "list"}, {"doctor", "--config", n.configFile()}} {
		began := time.Now()
		_, err := n.try(append([]string{"--timeout", "1s"}, args...)...)
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("vrouter %v took %v", args, took)
		}
		if args[0] != "doctor" && (err == nil || !strings.Contains(err.Error(), "did not answer within 1s")) {
			t.Errorf("vrouter %v: %v", args, err)
		}
	}
	if err := datagram(x, y, 4, 64); err != nil {
		t.Errorf("packets do not flow meanwhile: %v", err)
	}
	if err := n.agent.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	n.run("status")
}
