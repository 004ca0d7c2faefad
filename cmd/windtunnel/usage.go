package main

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"windtunnel/internal/cli"
	"windtunnel/internal/phrase"
	"windtunnel/lab/suite"
	"windtunnel/lab/units"
)

// flagError returns an error for a wrong flag or a wrong value, with the correct form.
func flagError(cmd *cobra.Command, err error) error {
	var value *pflag.InvalidValueError
	var unknown *pflag.NotExistError
	var lacks *pflag.ValueRequiredError
	switch {
	case errors.As(err, &value) && value.GetValue() == "":
		return fmt.Errorf("--%s \"\": the value is empty; give one, or omit the flag", value.GetFlag().Name)
	case errors.As(err, &value):
		return fmt.Errorf("--%s %s: %s", value.GetFlag().Name, value.GetValue(), remedyOf(value))
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "":
		hint := fmt.Sprintf("`%s --help` lists the flags", cmd.CommandPath())
		if near := suite.Nearest(unknown.GetSpecifiedName(), flagNames(cmd)); near != "" {
			hint = "did you mean --" + near + "? " + hint
		}
		return fmt.Errorf("unknown flag --%s; %s", unknown.GetSpecifiedName(), hint)
	case errors.As(err, &lacks):
		return fmt.Errorf("%w; `%s --help` lists the flags with their values", err, cmd.CommandPath())
	}
	return err
}

// nonEmpty is the value of a flag that must not be empty: an empty variable of a shell script must
// not stand for the default.
type nonEmpty string

func (v *nonEmpty) String() string { return string(*v) }
func (v *nonEmpty) Type() string   { return "string" }

func (v *nonEmpty) Set(given string) error {
	if given == "" {
		return errors.New("the value is empty")
	}
	*v = nonEmpty(given)
	return nil
}

func flagNames(cmd *cobra.Command) []string {
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	return names
}

// remedyOf explains how to write the value of a flag.
func remedyOf(err *pflag.InvalidValueError) string {
	if c, ok := err.GetFlag().Value.(cli.Choice); ok {
		return c.Set(err.GetValue()).Error()
	}
	return remedy(err.GetFlag().Value.Type(), err.GetValue())
}

// remedy explains how to write a value of a flag's type.
func remedy(kind, given string) string {
	switch kind {
	case "duration":
		if v, err := strconv.ParseFloat(given, 64); err == nil && v > 0 {
			return fmt.Sprintf("give a unit, such as %ss", given)
		}
		var problem *units.Error
		if _, err := units.ParseDuration(given); errors.As(err, &problem) {
			return problem.Problem + "; " + problem.Remedy
		}
		return "give a time with its unit, such as 500ms, 15s or 2m30s"
	case "int":
		return "give a whole number, such as 10"
	case "uint64":
		return "give a whole number of 0 or more"
	case "bool":
		return "give true or false, or no value, which is true"
	}
	return "give names separated by commas; quote those that contain a comma or a quotation mark"
}

// group returns a command that only has subcommands. It prints its help if it gets no
// subcommand.
func group(use, short string, below ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: takes(0, 0), RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(below...)
	return cmd
}

// unknownCommand returns the error for an unknown subcommand of cmd. The error suggests
// a subcommand with a similar name.
func unknownCommand(cmd *cobra.Command, given string) error {
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return fmt.Errorf("there is no command `%s %s`; %s", cmd.CommandPath(), given, suite.Suggest(given, "commands", names))
}

// takes returns an error for a wrong number of arguments, with the usage line.
func takes(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) >= least && len(args) <= most {
			return nil
		}
		if cmd.HasSubCommands() {
			return unknownCommand(cmd, args[0])
		}
		wants := fmt.Sprintf("%d to %d arguments", least, most)
		switch {
		case most == math.MaxInt:
			wants = phrase.Count(least, "argument") + " or more"
		case most == 0:
			wants = "no argument"
		case least == most:
			wants = phrase.Count(most, "argument")
		case least == 0:
			wants = phrase.Count(most, "argument") + " at most"
		}
		return fmt.Errorf("%s takes %s, %d given: write `%s`", cmd.CommandPath(), wants, len(args), cmd.UseLine())
	}
}
