package setup

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestTheListIsComplete(t *testing.T) {
	all := Packages()
	if lines := strings.Count(list, "\n") - strings.Count(list, "#"); len(all) != lines {
		t.Errorf("%d packages in %d lines", len(all), lines)
	}
	seen := map[string]bool{}
	name := regexp.MustCompile(`^[a-z0-9][a-z0-9+.-]+$`)
	for _, p := range all {
		if !name.MatchString(p.Name) || seen[p.Name] {
			t.Errorf("%q is not a package's name, or stands twice", p.Name)
		}
		seen[p.Name] = true
		for _, file := range p.Files {
			if _, err := filepath.Match(file, ""); err != nil || strings.Contains(file, "/") != filepath.IsAbs(file) {
				t.Errorf("%s: %q is neither a program's name nor an absolute path", p.Name, file)
			}
		}
	}
}

func TestAMissingProgramIsNamedWithItsPackage(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for program, want := range map[string]string{
		"netserver": "netserver is not installed; get it with: apt-get install netperf",
		"zebra":     "zebra is not installed; get it with: apt-get install frr",
		"wt-none":   "wt-none is not installed",
	} {
		if got := Missing(program); got != want {
			t.Errorf("%s: %q, want %q", program, got, want)
		}
	}
}

func TestAnInstalledProgramIsNotMissing(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("no shell")
	}
	if why := Missing("sh"); why != "" {
		t.Error(why)
	}
}
