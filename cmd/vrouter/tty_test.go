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
