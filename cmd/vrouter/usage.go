package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// errSilent ends a command with exit code 1 and prints nothing: the command has
// already printed the problem.
var errSilent = errors.New("see above")

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
