package ssh

import (
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"

	"windtunnel/lab/experiment"
	"windtunnel/lab/suite"
)

func TestAScenarioWhoseProgramOneHostLacksIsSkippedWithTheHost(t *testing.T) {
	tool, err := exec.LookPath("iperf3")
	if err != nil {
		t.Skip("iperf3 is not installed; get it with: apt-get install iperf3")
	}
	// On host b another file, which is no program, is in the place of the tool.
	s := newSite(t, `ForceCommand case "$SSH_CONNECTION" in *.6" "22) exec unshare --mount sh -c 'mount --bind /dev/null `+tool+` && eval "$SSH_ORIGINAL_COMMAND"';; esac; eval "$SSH_ORIGINAL_COMMAND"`)
	sc := scenario("raw", time.Second)
	sc.Tool, sc.Workload.Rate = "iperf3", 0
	plan := &suite.Plan{Suite: "test", Nodes: 2, Trials: 1, Scenarios: []suite.Scenario{sc, scenario("raw", time.Second)}}
	plan.Scenarios[1].ID = "builtin"
	x, err := Connect(context.Background(), s.hosts, experiment.Programs(plan))
	s.Must(err)
	defer x.Close(context.Background())
	facts, _ := x.Facts()
	skips := experiment.Skips(plan, x, facts...)
	if why := skips["raw"]; len(skips) != 1 || !strings.HasPrefix(why, "host b: iperf3 is not installed; get it with: ") || strings.Contains(why, "host a") {
		t.Errorf("skipped %q, want raw because of host b", skips)
	}
}
