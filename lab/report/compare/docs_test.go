package compare

import (
	"os"
	"strings"
	"testing"

	"windtunnel/internal/must"
)

// The gate files in the documentation are valid.
func TestDocumentedGateFilesAreRight(t *testing.T) {
	data := must.Get(os.ReadFile("../../../docs/comparing.md"))(t)
	blocks := strings.Split(string(data), "```yaml\n")[1:]
	if len(blocks) == 0 {
		t.Fatal("the documentation shows no gate file")
	}
	for _, block := range blocks {
		text, _, _ := strings.Cut(block, "```")
		gates, err := ParseGates("comparing.md", []byte(text))
		if err != nil {
			t.Errorf("%v", err)
		} else if len(gates.List) < 2 {
			t.Errorf("%d gates in\n%s", len(gates.List), text)
		}
	}
}
