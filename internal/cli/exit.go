package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"windtunnel/internal/stdout"
	"windtunnel/internal/stopsignal"
)

// Exit codes of both programs. The code of an interrupted command is stopsignal.ExitCode.
const (
	ExitFailed = 1 // the command was called correctly, and failed
	ExitUsage  = 2 // wrong usage: a wrong command, argument, flag, or value of a flag
)

// failure is an error of a command that was called correctly.
type failure struct{ error }

func (f failure) Unwrap() error { return f.error }

// misuse is an error of wrong usage that a command's RunE function finds.
type misuse struct{ error }

func (m misuse) Unwrap() error { return m.error }

// Misuse marks an error of a RunE function as wrong usage. It returns nil for nil.
func Misuse(err error) error {
	if err == nil {
		return nil
	}
	return misuse{err}
}

// IsMisuse reports whether Misuse has marked an error.
func IsMisuse(err error) bool { return errors.As(err, new(misuse)) }

// Execute runs the command that the program's arguments name. A failed write to the standard output is an error.
func Execute(ctx context.Context, top *cobra.Command) (*cobra.Command, error) {
	out := &stdout.File{}
	top.SetOut(out)
	cmd, err := top.ExecuteContextC(ctx)
	if failed := out.Or(nil); failed != nil { // cobra returns it as another error
		err = failure{failed}
	}
	return cmd, err
}

// MarkFailures marks the errors of the RunE functions of a command and of its subcommands as failures, except
// those that Misuse has marked. All other errors are wrong usage.
func MarkFailures(cmd *cobra.Command) {
	if run := cmd.RunE; run != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			err := run(cmd, args)
			if err == nil || IsMisuse(err) {
				return err
			}
			return failure{err}
		}
	}
	for _, c := range cmd.Commands() {
		MarkFailures(c)
	}
}

// ExitCode returns the exit code for an error of a command.
func ExitCode(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, stopsignal.ErrInterrupted):
		return stopsignal.ExitCode
	case errors.As(err, new(failure)):
		return ExitFailed
	}
	return ExitUsage
}
