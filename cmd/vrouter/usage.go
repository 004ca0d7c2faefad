package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// failure is an error of a command that was called correctly. Its exit code is
// 1. Every other error is wrong usage, with exit code 2.
type failure struct{ error }

func (f failure) Unwrap() error { return f.error }

// errSilent ends a command with exit code 1 and prints nothing: the command has
// already printed the problem.
var errSilent = errors.New("see above")

// misuse is a usage error that only the command's body can detect.
type misuse struct{ error }

func (m misuse) Unwrap() error { return m.error }

// markFailures wraps the errors of a command's body, and of its subcommands'
// bodies, as failures. A misuse stays a usage error.
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

// withHelpHint adds the command that prints the help.
func withHelpHint(cmd *cobra.Command, err error) error {
	text, gap := strings.TrimSpace(err.Error()), "; "
	if strings.Contains(text, "\n") {
		gap = "\n"
	}
	return fmt.Errorf("%s%ssee `%s --help`", text, gap, cmd.CommandPath())
}

// group makes a command that only has subcommands. Without a subcommand, or with
// an unknown one, it is a usage error.
func group(cmd *cobra.Command) *cobra.Command {
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return fmt.Errorf("%s needs a subcommand", cmd.Name())
		}
		return fmt.Errorf("unknown command %q for %q", args[0], cmd.CommandPath())
	}
	cmd.RunE = func(*cobra.Command, []string) error { return nil }
	return cmd
}
