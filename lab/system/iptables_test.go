package system

import (
	"os/exec"
	"strings"
	"testing"
)

// assertNoRules: a node has no iptables rule and no chain of Docker's or Weave's.
func assertNoRules(t *testing.T, n *Node) {
	t.Helper()
	err := n.Space.Do(func() error {
		rules, err := exec.Command("iptables-save").Output()
		for line := range strings.Lines(string(rules)) {
			if strings.HasPrefix(line, "-A") || strings.Contains(line, "DROP") || strings.HasPrefix(line, ":DOCKER") || strings.HasPrefix(line, ":WEAVE") {
				t.Errorf("rule %q is left in %s", strings.TrimSpace(line), n.Name)
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
