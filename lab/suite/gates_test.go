package suite

import (
	"os"
	"strings"
	"testing"

	"windtunnel/internal/must"
)

func TestEveryKeyOfAGateIsDocumented(t *testing.T) {
	data, err := os.ReadFile("../../docs/comparing.md")
	must.Succeed(t, err)
	for _, f := range gateKeys.fields {
		if !strings.Contains(string(data), "| `"+f.key+"` |") {
			t.Errorf("the key %s is not documented", f.key)
		}
	}
}
