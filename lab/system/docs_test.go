package system

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The example of docs/adding-a-system.md compiles as a file of this package.
func TestTheDocumentedSystemCompiles(t *testing.T) {
	goTool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("the go tool is not in PATH")
	}
	doc, err := os.ReadFile("../../docs/adding-a-system.md")
	if err != nil {
		t.Fatal(err)
	}
	_, code, ok := strings.Cut(string(doc), "```go\n")
	code, _, ok2 := strings.Cut(code, "```\n")
	if !ok || !ok2 || !strings.Contains(code, "func (Ipvlan) Attach(") {
		t.Fatal("docs/adding-a-system.md has no example of a system")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "ipvlan.go")
	use := "\nvar _ System = Ipvlan{}\n"
	if err := os.WriteFile(file, []byte(code+use), 0o644); err != nil {
		t.Fatal(err)
	}
	here, err := filepath.Abs("ipvlan_example.go")
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{here: file}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(goTool, "build", "-overlay", filepath.Join(dir, "overlay.json"), ".").CombinedOutput()
	if err != nil {
		t.Errorf("the example does not compile: %v\n%s", err, out)
	}
}
