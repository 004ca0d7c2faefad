package suite

import (
	"os"
	"strings"
	"testing"
)

func TestEveryKeyOfAGateIsDocumented(t *testing.T) {
	data, err := os.ReadFile("../../docs/comparing.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range gateKeys.fields {
		if !strings.Contains(string(data), "| `"+f.key+"` |") {
			t.Errorf("the key %s is not documented", f.key)
		}
	}
}
