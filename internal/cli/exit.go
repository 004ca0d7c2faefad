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

// misuse is wrong usage that only the command's body can detect.
type misuse struct{ error }

func (m misuse) Unwrap() error { return m.error }

// Misuse makes an error of a command's body wrong usage. It returns nil for nil.
func Misuse(err error) error {
	if err == nil {
		return nil
	}
	return misuse{err}
}

// IsMisuse reports whether a command's body found wrong usage.
func IsMisuse(err error) bool { return errors.As(err, new(misuse)) }

// Execute runs the command that the arguments name, with the standard output.
func Execute(ctx context.Context, top *cobra.Command) (*cobra.Command, error) {
	out := &stdout.File{}
	top.SetOut(out)
	cmd, err := top.ExecuteContextC(ctx)
	if failed := out.Or(nil); failed != nil { // cobra returns it as another error
		err = failure{failed}
	}
	return cmd, err
}

// MarkFailures makes the errors of the bodies of a command, and of the commands below it,
// failures. All other errors are wrong usage.
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
