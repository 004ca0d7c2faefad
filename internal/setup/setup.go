// Package setup has the list of optional Debian packages: what `make setup` installs, what
// the doctor recommends, and what the tests name when they are skipped.
package setup

import (
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// File is the list's path in the repository. setup.sh and the Dockerfile read it too.
const File = "internal/setup/packages.txt"

//go:embed packages.txt
var list string

// Package is an optional Debian package.
type Package struct {
	Name  string
	Files []string // programs in PATH, and patterns of absolute paths
	For   string   // what needs it
}

// Packages returns the optional packages.
func Packages() []Package {
	var all []Package
	for line := range strings.Lines(list) {
		fields := strings.Fields(line)
		if len(fields) < 3 || fields[0] == "#" {
			continue
		}
		all = append(all, Package{fields[0], strings.Split(fields[1], ","), strings.Join(fields[2:], " ")})
	}
	return all
}

// Command returns the command that installs a Debian package of the list, given by its name or
// by a program's name or path, and the package's component if that is not main. It is empty if
// the list lacks the package.
func Command(program string) string {
	for _, p := range Packages() {
		if p.Name != program && !slices.ContainsFunc(p.Files, func(file string) bool { return file == program || filepath.Base(file) == program }) {
			continue
		}
		command := "apt-get install " + p.Name
		if _, component, found := strings.Cut(p.For, " (component "); found {
			command += " (component " + component
		}
		return command
	}
	return ""
}

// Built are the optional programs that no distribution packages: the Makefile builds them.
var Built = []string{"weaver", "flanneld", "flannel"}

// Installed returns the paths of the optional programs and files that exist here.
func Installed() []string {
	var paths []string
	home, _ := os.UserHomeDir()
	for _, name := range Built {
		for _, path := range []string{name, filepath.Join(home, "go/bin", name)} {
			if path, err := exec.LookPath(path); err == nil && !slices.Contains(paths, path) {
				paths = append(paths, path)
			}
		}
	}
	for _, p := range Packages() {
		for _, file := range p.Files {
			if !filepath.IsAbs(file) {
				if path, err := exec.LookPath(file); err == nil {
					paths = append(paths, path)
				}
				continue
			}
			found, _ := filepath.Glob(file) // the list's patterns are valid: TestTheListIsComplete
			paths = append(paths, found...)
		}
	}
	return paths
}
