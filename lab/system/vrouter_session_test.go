package system

import (
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
)

// While a trial is metered, the session of the lab's agent has the highest priority. The traffic would wait for the CPU if a command of
// vrouter ran in that session. The agent's settings of the Go runtime are not for vrouter either.
func TestCommandsOfVRouterRunInASessionOfTheirOwn(t *testing.T) {
	t.Setenv("GOGC", "400")
	if environment := must.Get(vrouterOutput("env"))(t); strings.Contains(environment, "GOGC=") {
		t.Errorf("the environment of the command has GOGC, which is a setting of the agent only: %s", environment)
	}
	stat := must.Get(vrouterOutput("cat", "/proc/self/stat"))(t)
	_, fields, _ := strings.Cut(stat, ") ") // the name before it can contain spaces
	own := must.Get(unix.Getsid(0))(t)
	if session := strings.Fields(fields)[3]; session == strconv.Itoa(own) {
		t.Errorf("the command ran in session %s, which is that of this program", session)
	}
}
