package program

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// Path returns the executable's path; "" if it is not installed. Path searches for
// the first name in PATH and in the folders of `go install`, and then for the next
// name.
func (p Program) Path() string {
	for _, name := range append([]string{p.Name}, p.Also...) {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
		if p.Module == "" {
			continue
		}
		for _, dir := range goBin() {
			if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
				return path
			}
		}
	}
	return ""
}

// VersionCommand returns Version with the program's path.
func (p Program) VersionCommand() []string {
	argv := slices.Clone(p.Version)
	if path := p.Path(); path != "" && len(argv) > 0 && argv[0] == p.Name {
		argv[0] = path
	}
	return argv
}

// goBin lists the folders that `go install` writes to: GOBIN, else bin in each
// folder of GOPATH, by default ~/go (go help install).
func goBin() []string {
	if dir := os.Getenv("GOBIN"); dir != "" {
		return []string{dir}
	}
	var dirs []string
	for _, dir := range filepath.SplitList(os.Getenv("GOPATH")) {
		dirs = append(dirs, filepath.Join(dir, "bin"))
	}
	if home, err := os.UserHomeDir(); len(dirs) == 0 && err == nil {
		dirs = append(dirs, filepath.Join(home, "go", "bin"))
	}
	return dirs
}

// Beside returns the path of a program that is built together with the running
// one: in the same folder, else on PATH.
func Beside(name string) (string, error) {
	if self, err := os.Executable(); err == nil {
		path := filepath.Join(filepath.Dir(self), name)
		if unix.Access(path, unix.X_OK) == nil {
			return path, nil
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("the %s program is neither in the directory of this program nor on PATH: build it with `make build`", name)
	}
	return path, nil
}
