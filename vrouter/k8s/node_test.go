package k8s

import (
	"os"
	"path/filepath"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/vrouter/agent/config"
)

// The agent's node name must be that of the Node object, also if YAML would read the name as a number or null.
func TestTheAgentsNodeHasTheNameOfTheNodeObject(t *testing.T) {
	path := filepath.Join(t.TempDir(), "node.yaml")
	for _, name := range []string{"n1", "01", "010", "0x1f", "1.10", "null", "true"} {
		must.Succeed(t, os.WriteFile(path, []byte(configText([]byte("lease: 20s"), name, []string{"192.0.2.1"})), 0o600))
		if c, err := config.Load(path); err != nil || c.Node != name {
			t.Errorf("the configuration for node %q has the name %q, error %v", name, c.Node, err)
		}
	}
}
