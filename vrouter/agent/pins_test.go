package agent

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/vrouter/agent/agenttest"
	"windtunnel/vrouter/agent/netdev"
	"windtunnel/vrouter/api"
)

// pinsFinding returns the doctor's finding about the pins.
func pinsFinding(t *testing.T, r *running) api.Finding {
	t.Helper()
	all := must.Get(r.client.Doctor(context.Background()))(t)
	for _, f := range all {
		if f.Topic == "pins" {
			return f
		}
	}
	t.Fatalf("the doctor says nothing of pins: %+v", all)
	return api.Finding{}
}

// TestPinsThatEndWithTheAgentAreReported runs an agent in a separate mount
// namespace, as `ip netns exec` does, without access to process 1. Doctor and status
// report that the pins end with the agent, and they do.
func TestPinsThatEndWithTheAgentAreReported(t *testing.T) {
	t.Parallel()
	agenttest.NeedRoot(t)
	if _, err := exec.LookPath("unshare"); err != nil {
		t.Skip("needs unshare of util-linux")
	}
	f := agenttest.NewFleet(t)
	w := agenttest.NewSpace(t, "w")
	c := f.Config("a")
	a := start(t, c) // the state, and what the doctor says where all is well
	must.Get(a.client.PutState(context.Background(), f.State(map[string]*netdev.Space{"a1": w})))(t)
	if good := pinsFinding(t, a); good.Level != api.LevelOK || !strings.Contains(good.Text, "packets keep flowing without the agent") {
		t.Errorf("of pins that stay the doctor says %+v", good)
	}
	must.Succeed(t, a.healthy())
	a.stop(t)
	removed(t, c)

	hidden := fmt.Sprintf("mount --bind %q /proc/1 && exec %q", t.TempDir(), testBinary(t))
	cmd := launched(t, written(t, c), exec.Command("unshare", "--mount", "--propagation", "private", "sh", "-c", hidden))
	answers(t, a)
	must.Get(a.client.PutState(context.Background(), f.State(map[string]*netdev.Space{"a1": w})))(t)
	bad := pinsFinding(t, a)
	if bad.Level != api.LevelProblem || !strings.Contains(bad.Text, c.PinsDir()) || !strings.Contains(bad.Text, "when the agent ends") || !strings.Contains(bad.Remedy, "netns: "+c.Netns) {
		t.Errorf("the doctor says %+v", bad)
	}
	must.Succeed(t, a.complains("when the agent ends", "vrouter doctor"))
	served := func() []string {
		return programsOn(t, f.A, agenttest.LinkIn(t, f.A, "fab0"))
	}
	if len(served()) == 0 {
		t.Error("the fabric is not served")
	}
	killed(t, cmd)
	must.Eventually(t, "the programs' end with the agent", func() error {
		if left := served(); len(left) > 0 {
			return fmt.Errorf("still there: %q", left)
		}
		return nil
	})
}

func testBinary(t *testing.T) string {
	t.Helper()
	return must.Get(os.Executable())(t)
}
