package system

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The examples of docs/adding-a-system.md compile as files of this package.
func TestTheDocumentedSystemsCompile(t *testing.T) {
	goTool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("the go tool is not in PATH")
	}
	dir := t.TempDir()
	replace := map[string]string{}
	for name, code := range documentedSystems(t) {
		file := filepath.Join(dir, name+".go")
		use := "\nvar _ System = " + name + "{}\n"
		if err := os.WriteFile(file, []byte(code+use), 0o644); err != nil {
			t.Fatal(err)
		}
		here, err := filepath.Abs("documented_" + strings.ToLower(name) + ".go")
		if err != nil {
			t.Fatal(err)
		}
		replace[here] = file
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(goTool, "build", "-overlay", filepath.Join(dir, "overlay.json"), ".").CombinedOutput()
	if err != nil {
		t.Errorf("the examples do not compile: %v\n%s", err, out)
	}
}

// documentedSystems are the Go files of the documentation, by the system that
// each of them holds: one of devices, one of a program.
func documentedSystems(t *testing.T) map[string]string {
	t.Helper()
	doc, err := os.ReadFile("../../docs/adding-a-system.md")
	if err != nil {
		t.Fatal(err)
	}
	systems := map[string]string{}
	attach := regexp.MustCompile(`func \((?:\w+ )?(\w+)\) Attach\(`)
	for _, block := range strings.Split(string(doc), "```go\n")[1:] {
		code, _, ended := strings.Cut(block, "```\n")
		name := attach.FindStringSubmatch(code)
		if !ended || name == nil {
			t.Fatalf("docs/adding-a-system.md has Go code that is no system:\n%s", block)
		}
		systems[name[1]] = code
	}
	for _, name := range []string{"Ipvlan", "Socat"} {
		if systems[name] == "" {
			t.Fatalf("docs/adding-a-system.md has no example %s", name)
		}
	}
	return systems
}
