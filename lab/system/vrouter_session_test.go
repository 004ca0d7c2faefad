package system

import (
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
)

// While a trial is metered, the session of the lab's agent has the highest priority. A command of vrouter in that session
// would keep the traffic from the node's CPU.
func TestCommandsOfVRouterRunInASessionOfTheirOwn(t *testing.T) {
	stat := must.Get(vrouterOutput("cat", "/proc/self/stat"))(t)
	_, fields, _ := strings.Cut(stat, ") ") // the name before it can contain spaces
	own := must.Get(unix.Getsid(0))(t)
	if session := strings.Fields(fields)[3]; session == strconv.Itoa(own) {
		t.Errorf("the command ran in session %s, which is that of this program", session)
	}
}
