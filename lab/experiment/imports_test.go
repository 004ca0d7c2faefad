package experiment

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"windtunnel/internal/must"
)

// The engine must work with every executor. So it must not import any of them.
func TestTheEngineImportsNoExecutor(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file := must.Get(parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly))(t)
		for _, i := range file.Imports {
			if strings.HasPrefix(i.Path.Value, `"windtunnel/lab/testbed/`) {
				t.Errorf("%s imports %s", name, i.Path.Value)
			}
		}
	}
}
