package program

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"windtunnel/internal/must"
)

// install puts an executable of that name into a folder and returns its path.
func install(t *testing.T, dir, name string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	must.Succeed(t, os.MkdirAll(dir, 0o755))
	must.Succeed(t, os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755))
	return path
}

func TestAProgramIsFoundInPATHAndByItsOtherNames(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	other := install(t, dir, "thing")
	p := Program{Name: "thingd", Also: []string{"thing"}, Version: []string{"thingd", "-V"}}
	must.Equal(t, other, p.Path())
	if got := p.VersionCommand(); !slices.Equal(got, []string{other, "-V"}) || p.Version[0] != "thingd" {
		t.Errorf("its version is asked by %q, and Version is %q", got, p.Version)
	}
	preferred := install(t, dir, "thingd")
	must.Equal(t, preferred, p.Path())
	must.Equal(t, "", (Program{Name: "wt-none"}).Path())
}

func TestOnlyAGoProgramIsLookedForWhereGoInstallPutsIt(t *testing.T) {
	home := t.TempDir()
	t.Setenv("PATH", t.TempDir())
	t.Setenv("HOME", home)
	for _, c := range []struct{ gobin, gopath, dir string }{
		{"", "", filepath.Join(home, "go", "bin")},
		{"", filepath.Join(home, "one") + ":" + filepath.Join(home, "two"), filepath.Join(home, "two", "bin")},
		{filepath.Join(home, "gobin"), filepath.Join(home, "one"), filepath.Join(home, "gobin")},
	} {
		t.Setenv("GOBIN", c.gobin)
		t.Setenv("GOPATH", c.gopath)
		p := Program{Name: "wt-gopher", Module: "example.org/wt-gopher@v1.0.0"}
		if got := p.Path(); got != "" {
			t.Fatalf("found %q before it was installed", got)
		}
		want := install(t, c.dir, p.Name)
		if got := p.Path(); got != want {
			t.Errorf("GOBIN=%q GOPATH=%q: found %q, want %q", c.gobin, c.gopath, got, want)
		}
		p.Module = ""
		if got := p.Path(); got != "" {
			t.Errorf("a program that is no Go program was found at %q", got)
		}
	}
}
