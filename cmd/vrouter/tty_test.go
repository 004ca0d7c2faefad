package main

import (
	"testing"

	"windtunnel/internal/ptytest"
)

// A terminal that answers no query must not delay a command, and a log must get no escape sequence.
func TestCommandsSendATerminalNoQuery(t *testing.T) {
	t.Parallel()
	ptytest.NoQuery(t, "vrouter", "--version", "version", "--help", "node --help", "no-such-command")
}

// A command that cannot print its result must not succeed.
func TestAFullStandardOutputIsAFailure(t *testing.T) {
	t.Parallel()
	ptytest.FullOutput(t, "vrouter", "version", "--version", "--help", "port --help")
}
