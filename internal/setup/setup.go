// Package setup has the list of optional Debian packages: what `make setup` installs, what
// the doctor recommends, and what the tests name when they are skipped.
package setup

import (
	_ "embed"
	"fmt"
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

// Of returns the name of the Debian package that has a program; empty if the list has none.
func Of(program string) string {
	for _, p := range Packages() {
		if slices.ContainsFunc(p.Files, func(file string) bool { return filepath.Base(file) == program }) {
			return p.Name
		}
	}
	return ""
}

// Missing returns the reason why a program cannot be used, with the command that installs it.
// It is empty if the program is in PATH.
func Missing(program string) string {
	if _, err := exec.LookPath(program); err == nil {
		return ""
	}
	pkg := Of(program)
	if pkg == "" {
		return program + " is not installed"
	}
	return fmt.Sprintf("%s is not installed; get it with: apt-get install %s", program, pkg)
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
