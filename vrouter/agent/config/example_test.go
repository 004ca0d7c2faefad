package config

import (
	"os"
	"regexp"
	"testing"

	"windtunnel/internal/must"
)

// The configuration that the package installs starts no agent. With the comment marks
// removed it is valid.
func TestThePackagesConfiguration(t *testing.T) {
	text, err := os.ReadFile("../../../dist/vrouter/node.yaml")
	must.Succeed(t, err)
	_, err = parseConfig("n.yaml", text, "/etc/vrouter")
	must.Fail(t, err, "node: is missing")
	enabled := regexp.MustCompile(`(?m)^#([a-z_]+: )`).ReplaceAll(text, []byte("$1"))
	c, err := parseConfig("n.yaml", enabled, "/etc/vrouter")
	if err != nil {
		t.Fatalf("%v in the configuration without comment marks:\n%s", err, enabled)
	}
	if c.Node != "rack3-a" || len(c.Fabric) != 1 || c.StoreTLS.CA == "" || c.Metrics == "" {
		t.Errorf("%+v, want every key of the file", c)
	}
}
