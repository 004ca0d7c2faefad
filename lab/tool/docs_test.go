package tool

import (
	"strings"
	"testing"

	"windtunnel/internal/guide"
	"windtunnel/internal/must"
)

func TestTheGuidesExampleCompilesAndPassesItsOwnTests(t *testing.T) {
	must.Long(t)
	files := guide.Files(t, "../..", "docs/adding-a-tool.md")
	if len(files) != 3 {
		t.Fatalf("the page makes %d files, want 3", len(files))
	}
	guide.Run(t, "../..", files, "vet", "./lab/tool")
	out := guide.Run(t, "../..", files, "test", "-short", "-v", "-run", "^TestNuttcp|^TestEveryTool", "./lab/tool")
	if n := strings.Count(out, "--- PASS: TestNuttcp"); n != 3 {
		t.Errorf("%d of the guide's 3 tests passed:\n%s", n, out)
	}
}
