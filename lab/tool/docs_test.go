package tool

import (
	"context"
	"encoding/json"
	"go/format"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

const guide = "../../docs/adding-a-tool.md"

// TestTheGuidesExampleCompilesAndPassesItsOwnTests lays the guide's files over
// this package, its line into the registry, and runs the guide's tests there.
func TestTheGuidesExampleCompilesAndPassesItsOwnTests(t *testing.T) {
	goTool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("the go command is not in PATH")
	}
	text, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	var files, lines []string
	for _, block := range regexp.MustCompile("(?ms)^```go( registry)?\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
		if block[1] != "" {
			lines = append(lines, block[2])
		} else {
			files = append(files, block[2])
		}
	}
	if len(files) != 2 || len(lines) != 1 {
		t.Fatalf("%s has %d Go files and %d registry lines, want 2 and 1", guide, len(files), len(lines))
	}
	for i, source := range files {
		formatted, err := format.Source([]byte(source))
		if err != nil || string(formatted) != source {
			t.Errorf("Go block %d of %s is not as gofmt writes it (%v)", i+1, guide, err)
		}
	}
	registry, err := os.ReadFile("registry.go")
	if err != nil {
		t.Fatal(err)
	}
	const before = "\t\tNTttcp{},\n"
	if strings.Count(string(registry), before) != 1 {
		t.Fatalf("registry.go has no line %q to put the example behind", before)
	}
	extended := strings.Replace(string(registry), before, before+lines[0], 1)
	overlay := layOver(t, map[string]string{"nuttcp.go": files[0], "nuttcp_test.go": files[1], "registry.go": extended})
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	for _, args := range [][]string{
		{"vet", "-overlay", overlay, "."},
		{"test", "-overlay", overlay, "-short", "-v", "-run", "^TestNuttcp|^TestEveryToolIsFound", "."},
	} {
		out, err := exec.CommandContext(ctx, goTool, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		if n := strings.Count(string(out), "--- PASS: TestNuttcp"); args[0] == "test" && n != 3 {
			t.Errorf("%d of the guide's 3 tests passed:\n%s", n, out)
		}
	}
}

// layOver writes files to a place of their own and returns the overlay that
// puts them into this package for one command.
func layOver(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	var overlay struct{ Replace map[string]string }
	overlay.Replace = map[string]string{}
	for name, source := range files {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
		overlay.Replace[filepath.Join(here, name)] = path
	}
	text, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
