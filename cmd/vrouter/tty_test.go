package main

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	"windtunnel/internal/ptytest"
)

// A terminal that answers no query must not delay a command, and a log must get no escape sequence.
func TestCommandsSendATerminalNoQuery(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"--version", "version", "--help", "node --help", "no-such-command"} {
		cmd := exec.Command("vrouter", strings.Fields(args)...)
		cmd.Env = append(os.Environ(), "TERM=xterm-256color", "CI=")
		out, _ := ptytest.Run(t, cmd)
		if len(out) == 0 || bytes.ContainsRune(out, '\x1b') {
			t.Errorf("vrouter %s wrote %q, want text without escape sequences", args, out)
		}
	}
}

// A command that cannot print its result must not succeed.
func TestAFullStandardOutputIsAFailure(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	for _, args := range []string{"version", "--version", "--help", "port --help"} {
		cmd := exec.Command("vrouter", strings.Fields(args)...)
		var problems bytes.Buffer
		cmd.Stdout, cmd.Stderr = full, &problems
		if err := cmd.Run(); cmd.ProcessState.ExitCode() != 1 || !strings.Contains(problems.String(), "no space left on device") {
			t.Errorf("vrouter %s: %v, %q; want exit status 1 and the reason", args, err, problems.String())
		}
	}
}
