// Package guide applies the code blocks of a page of docs/ to this module, for tests of the page.
package guide

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

	"windtunnel/internal/must"
)

var block = regexp.MustCompile("(?ms)^```go ?([^\n]*)\n(.*?)^```$")

// Files returns the files that a page's Go blocks make, by their paths below the module's root
// directory. A block "```go PATH" is a new file. A block "```go PATH after TEXT" has lines for
// an existing file; they are put behind its line that contains TEXT.
func Files(t *testing.T, root, page string) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, b := range block.FindAllStringSubmatch(read(t, filepath.Join(root, page)), -1) {
		path, after, inserted := strings.Cut(b[1], " after ")
		if !inserted {
			if formatted, err := format.Source([]byte(b[2])); err != nil || string(formatted) != b[2] {
				t.Errorf("%s: the block %s is not in gofmt's form (%v)", page, path, err)
			}
			files[path] = b[2]
			continue
		}
		if files[path] == "" {
			files[path] = read(t, filepath.Join(root, path))
		}
		files[path] = insert(t, path, files[path], after, b[2])
	}
	return files
}

// insert puts lines behind the only line of a file that contains a text, unless the file has the
// lines already.
func insert(t *testing.T, path, source, after, lines string) string {
	t.Helper()
	if strings.Contains(source, lines) {
		return source
	}
	if n := strings.Count(source, after); n != 1 {
		t.Fatalf("%s contains %q %d times, want once", path, after, n)
	}
	at := strings.Index(source, after)
	end := at + strings.Index(source[at:], "\n") + 1
	return source[:end] + lines + source[end:]
}

// Run runs a command of the go program in the root directory, as if the files were in the module,
// and returns its output.
func Run(t *testing.T, root string, files map[string]string, command string, args ...string) string {
	t.Helper()
	goTool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("the go command is not in PATH")
	}
	here, err := filepath.Abs(root)
	must.Succeed(t, err)
	dir, replace := t.TempDir(), map[string]string{}
	for path, source := range files {
		file := filepath.Join(dir, strings.ReplaceAll(path, "/", "_"))
		write(t, file, source)
		replace[filepath.Join(here, path)] = file
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	must.Succeed(t, err)
	write(t, filepath.Join(dir, "overlay.json"), string(overlay))
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, goTool, append([]string{command, "-overlay", filepath.Join(dir, "overlay.json")}, args...)...)
	cmd.Dir = here
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("go %s %s: %v\n%s", command, strings.Join(args, " "), err, out)
	}
	return string(out)
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	must.Succeed(t, err)
	return string(text)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	must.Succeed(t, os.WriteFile(path, []byte(text), 0o600))
}
