package netns

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/lab/agent"
)

// An agent that meters must run at once when it has to read a counter, also while the jobs of fio use the same CPU. So its session
// has the highest priority from MeterStart to MeterStop.
func TestTheSessionOfAnAgentThatMetersHasTheHighestPriority(t *testing.T) {
	n := up(t, executor(t), 2, fabric(nil)).nodes[0]
	file := fmt.Sprintf("/proc/%d/autogroup", n.process.PID())
	check := func(when, want string) {
		t.Helper()
		text, err := os.ReadFile(file)
		if os.IsNotExist(err) {
			t.Skip("the kernel has no autogroups")
		}
		if err != nil || !strings.HasSuffix(string(text), " nice "+want+"\n") {
			t.Errorf("%s: %s has %q (error %v), want nice %s", when, file, text, err, want)
		}
	}
	check("before MeterStart", "0")
	must.Succeed(t, n.agent.MeterStart(t.Context(), agent.MeterArgs{Node: n.Name(), CPUs: n.CPUs()}))
	check("after MeterStart", "-20")
	must.Get(n.agent.MeterStop(t.Context()))(t)
	check("after MeterStop", "0")
}
