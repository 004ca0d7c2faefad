package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/internal/ptytest"
	"windtunnel/lab/experiment"
	"windtunnel/lab/suite"
)

// onTerminal runs windtunnel on a terminal that answers no query, and returns what it wrote.
func onTerminal(t *testing.T, args string, env ...string) []byte {
	t.Helper()
	cmd := exec.Command("windtunnel", strings.Fields(args)...)
	cmd.Env = append(os.Environ(), append([]string{"TERM=xterm-256color", "CI=", "NO_COLOR="}, env...)...)
	out, _ := ptytest.Run(t, cmd)
	if len(out) == 0 {
		t.Errorf("windtunnel %s wrote nothing", args)
	}
	return out
}

// A terminal that answers no query must not delay a command, and a log must get no escape sequence.
func TestCommandsSendATerminalNoQuery(t *testing.T) {
	t.Parallel()
	ptytest.NoQuery(t, "windtunnel", "--version", "version", "--help", "run --help", "suites", "no-such-command")
}

func TestNoColorAndADumbTerminalGetPlainText(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must.Succeed(t, putAll(dir, "main.db", newStored("main", 1)))
	for _, command := range []string{"report", "explain"} {
		command += " --db " + dir + "/main.db"
		if out := onTerminal(t, command); !bytes.Contains(out, []byte("\x1b[1m")) {
			t.Errorf("windtunnel %s on a terminal wrote %.200q, want bold titles", command, out)
		}
		for _, plain := range []string{"NO_COLOR=1", "TERM=dumb"} {
			if out := onTerminal(t, command, plain); bytes.ContainsRune(out, '\x1b') {
				t.Errorf("%s windtunnel %s wrote %.200q, want no escape sequence", plain, command, out)
			}
		}
	}
}

func TestSlowCommandsShowTheirProgress(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"doctor --brief", "doctor suites", "suites"} {
		if out := onTerminal(t, command); !bytes.HasPrefix(bytes.TrimLeft(out, "\r "), []byte("testing kernel features and programs …")) {
			t.Errorf("windtunnel %s began with %.100q", command, out)
		}
	}
}

// Answers to queries would appear on the screen, because the live line reads no input.
func TestTheLiveLineSendsNoQuery(t *testing.T) {
	t.Setenv("TERM", "xterm-256color")
	t.Setenv("CI", "")
	for noColor, styled := range map[string]bool{"": true, "1": false} {
		t.Setenv("NO_COLOR", noColor)
		screen, replica := ptytest.Open(t, 100)
		if !canRedraw(replica) {
			t.Fatal("a terminal gets no live line")
		}
		v := newDisplay(&suite.Plan{Trials: 1}, replica, true)
		v.Began(experiment.Trial{Scenario: "raw/stream"}, experiment.Progress{Number: 1, Total: 1, Attempt: 1})
		v.Close()
		replica.Close()
		out, _ := io.ReadAll(screen)
		if !bytes.Contains(out, []byte("raw/stream")) || bytes.Contains(out, []byte("\x1b[1m")) != styled {
			t.Errorf("NO_COLOR=%s: %q lacks the scenario, or its style is wrong", noColor, out)
		}
		// Queries of a terminal: DA, DSR, DECRQM, OSC with a question mark, the Kitty keyboard's state.
		if q := regexp.MustCompile(`\x1b\[[?>=0-9;]*(c|n|\$p|q)|\x1b\][0-9;]*\?|\x1b\[\?u`).Find(out); q != nil {
			t.Errorf("the live line sends the query %q in %q", q, out)
		}
	}
}

func TestADumbTerminalGetsNoLiveLine(t *testing.T) {
	_, replica := ptytest.Open(t, 100)
	for _, env := range []string{"TERM=dumb", "CI=true"} {
		t.Setenv("TERM", "xterm-256color")
		name, value, _ := strings.Cut(env, "=")
		t.Setenv(name, value)
		if canRedraw(replica) {
			t.Errorf("a terminal with %s gets a live line", env)
		}
	}
}

// A command that cannot print its result must not succeed.
func TestAFullStandardOutputIsAFailure(t *testing.T) {
	t.Parallel()
	ptytest.FullOutput(t, "windtunnel", "version", "--version", "--help", "suites", "lab --help", "schema", "ntttcp -h")
}
