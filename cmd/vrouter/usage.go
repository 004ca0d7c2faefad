package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// failure is an error of a command that was called rightly: exit code 1. What
// is no failure was found in the arguments and flags: exit code 2.
type failure struct{ error }

func (f failure) Unwrap() error { return f.error }

// errSilent ends a command with exit code 1 and no further word: what it
// printed says it all.
var errSilent = errors.New("see above")

// misuse is an error of how a command was called that shows only in its body.
type misuse struct{ error }

func (m misuse) Unwrap() error { return m.error }

// markFailures tells what goes wrong in a command's body from how it was
// called, in a command and all below it.
func markFailures(cmd *cobra.Command) {
	if run := cmd.RunE; run != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			err := run(cmd, args)
			var wrong misuse
			if err == nil || errors.As(err, &wrong) {
				return err
			}
			return failure{err}
		}
	}
	for _, c := range cmd.Commands() {
		markFailures(c)
	}
}

// hinted says where a command's help is.
func hinted(cmd *cobra.Command, err error) error {
	text, gap := strings.TrimSpace(err.Error()), "; "
	if strings.Contains(text, "\n") {
		gap = "\n"
	}
	return fmt.Errorf("%s%ssee `%s --help`", text, gap, cmd.CommandPath())
}

// group is a command that only holds others: alone, or with a word that is
// none of them, it is called wrongly.
func group(cmd *cobra.Command) *cobra.Command {
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return fmt.Errorf("%s needs a command", cmd.Name())
		}
		return fmt.Errorf("unknown command %q for %q", args[0], cmd.CommandPath())
	}
	cmd.RunE = func(*cobra.Command, []string) error { return nil }
	return cmd
}
