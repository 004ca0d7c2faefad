package guide

import (
	"maps"
	"path/filepath"
	"testing"

	"windtunnel/internal/must"
)

// A person who follows a page has its files and lines in the module. The page's test must pass
// there too.
func TestAPageAppliedTwiceChangesNothingMore(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "registry.go"), "package p\n\nvar all = []T{\n\tA{},\n}\n")
	write(t, filepath.Join(root, "page.md"), "```go new.go\npackage p\n\ntype B struct{}\n```\n\n```go registry.go after A{},\n\tB{},\n```\n")
	first := Files(t, root, "page.md")
	want := map[string]string{"new.go": "package p\n\ntype B struct{}\n", "registry.go": "package p\n\nvar all = []T{\n\tA{},\n\tB{},\n}\n"}
	must.Equal(t, want, first)
	for path, text := range first {
		write(t, filepath.Join(root, path), text)
	}
	if again := Files(t, root, "page.md"); !maps.Equal(again, want) {
		t.Errorf("in a module with the page's files, the files are %q, want %q", again, want)
	}
}
