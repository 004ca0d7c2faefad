package program

import (
	"os"
	"path/filepath"
	"testing"

	"windtunnel/internal/must"
)

func TestAProgramIsFoundOnPathAndMissingOnesAreNamedWithTheRemedy(t *testing.T) {
	dir := t.TempDir()
	want := filepath.Join(dir, "wt-companion")
	must.Succeed(t, os.WriteFile(want, []byte("#!/bin/sh\n"), 0o755))
	t.Setenv("PATH", dir)
	if got, err := Beside("wt-companion"); err != nil || got != want {
		t.Errorf("found %q, %v; want %s", got, err, want)
	}
	_, err := Beside("wt-nobody")
	must.Fail(t, err, "wt-nobody", "make build")
}
