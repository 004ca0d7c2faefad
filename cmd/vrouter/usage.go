package main

import (
	"errors"
	"fmt"

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

// explainUsage tells errors of usage from failures, in a command and all below
// it, and lets each say where its help is.
func explainUsage(cmd *cobra.Command) {
	if run := cmd.RunE; run != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			err := run(cmd, args)
			var wrong misuse
			switch {
			case err == nil:
				return nil
			case errors.As(err, &wrong):
				return hint(cmd, wrong.error)
			}
			return failure{err}
		}
	}
	if args := cmd.Args; args != nil {
		cmd.Args = func(cmd *cobra.Command, given []string) error {
			if err := args(cmd, given); err != nil {
				return hint(cmd, err)
			}
			return nil
		}
	}
	cmd.SetFlagErrorFunc(hint)
	for _, c := range cmd.Commands() {
		explainUsage(c)
	}
}

func hint(cmd *cobra.Command, err error) error {
	return fmt.Errorf("%w; see `%s --help`", err, cmd.CommandPath())
}

// group is a command that only holds others: alone, or with a word that is
// none of them, it is called wrongly.
func group(cmd *cobra.Command) *cobra.Command {
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return fmt.Errorf("%s needs a command", cmd.CommandPath())
		}
		return fmt.Errorf("unknown command %q for %q", args[0], cmd.CommandPath())
	}
	cmd.RunE = func(*cobra.Command, []string) error { return nil }
	return cmd
}
