package guide

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"windtunnel/internal/must"
)

// The architecture names every package of the module, and only files that exist.
func TestTheArchitectureNamesEveryPackageAndExistingFiles(t *testing.T) {
	const root = "../.."
	text, err := os.ReadFile(filepath.Join(root, "docs/architecture.md"))
	must.Succeed(t, err)
	named, seen, files := map[string]bool{}, map[string]bool{}, ""
	for _, name := range regexp.MustCompile("`([a-z0-9/-]+)`").FindAllStringSubmatch(string(text), -1) {
		named[short(name[1])] = true
	}
	err = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		_, module := os.Stat(filepath.Join(path, "go.mod"))
		dir, _ := filepath.Rel(root, filepath.Dir(path))
		files += path + "\n"
		switch {
		case e.IsDir() && path != root && (module == nil || e.Name() == "testdata" || e.Name()[0] == '.'):
			return fs.SkipDir
		case strings.HasSuffix(path, ".go") && !seen[dir]:
			if seen[dir] = true; !named[short(dir)] {
				t.Errorf("docs/architecture.md does not name %s", dir)
			}
		}
		return nil
	})
	must.Succeed(t, err)
	if len(seen) < 50 {
		t.Errorf("only %d packages were found", len(seen))
	}
	for _, name := range regexp.MustCompile("`([a-z0-9_/]+\\.(?:go|h))`").FindAllStringSubmatch(string(text), -1) {
		if !strings.Contains(files, "/"+name[1]+"\n") {
			t.Errorf("docs/architecture.md names %s, which does not exist", name[1])
		}
	}
}

// short is a package's name in the text: its path below the folder of its program.
func short(path string) string {
	for _, folder := range []string{"lab/", "vrouter/", "internal/"} {
		path = strings.TrimPrefix(path, folder)
	}
	return strings.TrimSuffix(path, "/")
}
