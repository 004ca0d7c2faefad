package testprogram

import (
	"os/exec"
	"strings"
	"testing"
)

// Output runs a command line, split at its spaces, and returns what the command prints. If the
// command fails, the test fails.
func Output(t testing.TB, line string) string {
	t.Helper()
	argv := strings.Fields(line)
	out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", line, err, out)
	}
	return string(out)
}
