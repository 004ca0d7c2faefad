package main

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/shlex"
	"github.com/spf13/cobra"

	"windtunnel/internal/cli"
	"windtunnel/internal/cli/clitest"
	"windtunnel/internal/must"
	"windtunnel/internal/stopsignal"
)

// call runs a command line in this process, as main does, and returns its exit
// code.
func call(t *testing.T, args ...string) int {
	t.Helper()
	target.node, target.socket = "", ""
	cmd := root()
	cmd.SetArgs(args)
	cmd.SetOut(io.Discard)
	cmd.SetErr(io.Discard)
	return report(cmd.ExecuteContextC(context.Background()))
}

func TestExitCodes(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none.sock")
	for line, want := range map[string]int{
		"version":           0,
		"help vif":          0,
		"vif list --help":   0,
		"vif":               cli.ExitUsage,
		"vfi":               cli.ExitUsage,
		"vif list more":     cli.ExitUsage,
		"vif list --watch":  cli.ExitUsage, // watch(1) does it
		"top":               cli.ExitUsage,
		"vif list -o xml":   cli.ExitUsage,
		"vif list --colour": cli.ExitUsage,
		"trace --from a":    cli.ExitUsage,
		"rt get 10.0.0.4":   cli.ExitUsage,
		"port add --network red --socket " + none:                    cli.ExitUsage, // found before the agent is asked
		"vif list --socket " + none:                                  cli.ExitFailed,
		"apply -f none --socket " + none:                             cli.ExitFailed,
		"status --socket x --node y":                                 cli.ExitUsage,
		"agent --config " + none:                                     cli.ExitFailed,
		"agent":                                                      cli.ExitUsage,
		"remove --config " + none:                                    cli.ExitFailed,
		"trace --from a --to b":                                      cli.ExitUsage,
		"flow list --proto x --socket " + none:                       cli.ExitUsage,
		"network nat red --pool 192.0.2.0/28 --off --socket " + none: cli.ExitUsage,
		"network nat red --ports 4096 --off --socket " + none:        cli.ExitUsage,
	} {
		if got := call(t, strings.Fields(line)...); got != want {
			t.Errorf("vrouter %s: exit code %d, want %d", line, got, want)
		}
	}
	must.Equal(t, stopsignal.ExitCode, report(nil, stopsignal.ErrInterrupted))
	shown := &cobra.Command{RunE: func(*cobra.Command, []string) error { return errSilent }}
	cli.MarkFailures(shown)
	must.Equal(t, cli.ExitFailed, report(shown, shown.RunE(shown, nil)))
}

// The command accepts each command line of its examples.
func TestEveryCommandHasAnExampleThatWorks(t *testing.T) {
	seen := 0
	clitest.Commands(root(), func(c *cobra.Command) {
		if c.Hidden || !c.HasParent() {
			return
		}
		seen++
		lines := exampleLines(t, c.Example)
		if len(lines) == 0 {
			t.Errorf("%s has no example", c.CommandPath())
		}
		for _, args := range lines {
			if err := accepts(args); err != nil {
				t.Errorf("%s: example %q: %v", c.CommandPath(), args, err)
			}
		}
	})
	if seen < 30 {
		t.Errorf("only %d commands were looked at", seen)
	}
}

func TestHelpTextsHaveOneForm(t *testing.T) { clitest.Help(t, root()) }

// exampleLines returns the arguments of each call of vrouter in the examples,
// without redirections and other commands.
func exampleLines(t *testing.T, text string) [][]string {
	t.Helper()
	var lines [][]string
	for _, line := range strings.Split(text, "\n") {
		for _, part := range strings.Split(line, " | ") {
			words := must.Get(shlex.Split(part))(t)
			if len(words) == 0 || words[0] != "vrouter" {
				continue
			}
			for i, w := range words {
				if w == ">" || w == "&" {
					words = words[:i]
					break
				}
			}
			lines = append(lines, words[1:])
		}
	}
	return lines
}

// accepts returns the usage error of a command line, or nil.
func accepts(args []string) error {
	cmd, rest, err := root().Find(args)
	if err != nil {
		return err
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	if cmd.Args != nil {
		if err := cmd.Args(cmd, cmd.Flags().Args()); err != nil {
			return err
		}
	}
	return errors.Join(cmd.ValidateRequiredFlags(), cmd.ValidateFlagGroups())
}
