package setup

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"windtunnel/internal/must"
)

func TestTheListIsComplete(t *testing.T) {
	all := Packages()
	must.Equal(t, strings.Count(list, "\n")-strings.Count(list, "#"), len(all))
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

func TestAProgramIsInstalledByItsPackage(t *testing.T) {
	for program, want := range map[string]string{
		"netserver":          "apt-get install netperf (component non-free)",
		"zebra":              "apt-get install frr",
		"/usr/lib/frr/zebra": "apt-get install frr",
		"frr":                "apt-get install frr",
		"wt-none":            "",
	} {
		if got := Command(program); got != want {
			t.Errorf("%s: %q, want %q", program, got, want)
		}
	}
}

// The shell script and this package read the list alike. PATH lacks apt-get, so nothing is installed.
func TestTheSetupNamesThePackagesThatHaveAMissingFile(t *testing.T) {
	programs := t.TempDir()
	for _, name := range []string{"sh", "dirname", "grep", "tr", "ls", "id"} {
		path := must.Get(exec.LookPath(name))(t)
		must.Succeed(t, os.Symlink(path, filepath.Join(programs, name)))
	}
	t.Setenv("PATH", programs+":/usr/sbin:/sbin")
	want := "setup: tests that need these packages are skipped (installing them needs root and apt-get):"
	for _, p := range Packages() {
		for _, file := range p.Files {
			_, err := exec.LookPath(file)
			if found, _ := filepath.Glob(file); err != nil && len(found) == 0 {
				want += " " + p.Name
				break
			}
		}
	}
	if out, err := exec.Command("./setup.sh").CombinedOutput(); err != nil || string(out) != want+"\n" {
		t.Errorf("got (%v):\n%swant:\n%s", err, out, want)
	}
}
