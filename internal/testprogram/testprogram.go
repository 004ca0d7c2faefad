// Package testprogram gives tests the project's programs.
package testprogram

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// directory is the environment variable with the directory of the programs that `make build`
// made. `make test` sets it. Without it, tests build the programs from the present source.
const directory = "WINDTUNNEL_BIN"

// Build returns the path of a program of cmd/. Where directory is not set, it builds the program
// in dir, unless dir has it already.
func Build(dir, name string) (path string, err error) {
	HeedHangups()
	if bin := os.Getenv(directory); bin != "" {
		return filepath.Join(bin, name), nil
	}
	path = filepath.Join(dir, name)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", path, "windtunnel/cmd/"+name)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", name, err, out)
	}
	return path, nil
}

// HeedHangups restores the default action of SIGHUP for the programs that this process starts. Under
// nohup(1) they would otherwise inherit that SIGHUP is ignored.
func HeedHangups() {
	if signal.Ignored(syscall.SIGHUP) {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
}

// Output runs a command line, split at its spaces, and returns what the command prints. If the
// command fails, the test fails.
func Output(t testing.TB, line string) string {
	t.Helper()
	argv := strings.Fields(line)
	out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", line, err, out)
	}
	return string(out)
}
