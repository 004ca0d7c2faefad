package program

import (
	"os"
	"path/filepath"
	"strings"
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
	if _, err := Beside("wt-nobody"); err == nil || !strings.Contains(err.Error(), "wt-nobody") || !strings.Contains(err.Error(), "make build") {
		t.Errorf("a missing program: %v", err)
	}
}
