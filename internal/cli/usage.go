package cli

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"windtunnel/internal/phrase"
)

// Prepare adds exit codes (MarkFailures), help texts of cobra's flags, and errors of wrong usage with
// their remedy to a program's commands. nearest returns the flag whose name is most similar to a given
// name; "" if no flag is similar.
func Prepare(top *cobra.Command, nearest func(given string, known []string) string) {
	top.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return flagError(cmd, err, nearest) })
	groups(top)
	MarkFailures(top)
	helpFlags(top)
}

// groups makes commands that only have subcommands return an error if the subcommand is missing or
// unknown. Only the program itself prints its help without arguments.
func groups(cmd *cobra.Command) {
	for _, below := range cmd.Commands() {
		groups(below)
	}
	if cmd.Runnable() || !cmd.HasSubCommands() {
		return
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 && cmd.HasParent() {
			return fmt.Errorf("%s needs a subcommand; %s", cmd.CommandPath(), lister(cmd, "commands"))
		}
		return Takes(0, 0)(cmd, args)
	}
}

// lister returns a sentence with the command that lists the flags or the subcommands of cmd.
func lister(cmd *cobra.Command, what string) string {
	return fmt.Sprintf("`%s --help` lists the %s", cmd.CommandPath(), what)
}

// flagError returns an error for a wrong flag or a wrong value, with the correct form.
func flagError(cmd *cobra.Command, err error, nearest func(string, []string) string) error {
	var value *pflag.InvalidValueError
	var unknown *pflag.NotExistError
	var lacks *pflag.ValueRequiredError
	switch {
	case errors.As(err, &value) && value.GetValue() == "":
		return fmt.Errorf("--%s \"\": the value is empty; give one, or omit the flag", value.GetFlag().Name)
	case errors.As(err, &value):
		return fmt.Errorf("--%s %s: %s", value.GetFlag().Name, value.GetValue(), RemedyOf(value))
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "":
		hint := lister(cmd, "flags")
		if near := nearest(unknown.GetSpecifiedName(), flagNames(cmd)); near != "" {
			hint = "did you mean --" + near + "? " + hint
		}
		return fmt.Errorf("unknown flag --%s; %s", unknown.GetSpecifiedName(), hint)
	case errors.As(err, &lacks):
		return fmt.Errorf("%w; %s with their values", err, lister(cmd, "flags"))
	}
	return err
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

// RemedyOf explains how to write the value of a flag.
func RemedyOf(err *pflag.InvalidValueError) string {
	if c, ok := err.GetFlag().Value.(Choice); ok {
		return c.Set(err.GetValue()).Error()
	}
	if errors.Is(err, strconv.ErrRange) {
		return "the number is outside the possible range"
	}
	given := err.GetValue()
	switch err.GetFlag().Value.Type() {
	case "duration":
		if v, err := strconv.ParseFloat(given, 64); err == nil && v > 0 {
			return fmt.Sprintf("give a unit, such as %ss", given)
		}
		return "give a time with its unit, such as 500ms, 15s or 2m30s"
	case "int":
		return "give a whole number, such as 10"
	case "uint16", "uint32", "uint64":
		return "give a whole number of 0 or more"
	case "bool":
		return "give true or false, or no value, which is true"
	case "stringSlice":
		return "give names separated by commas; quote those that contain a comma or a quotation mark"
	}
	return err.Unwrap().Error()
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
	hint := lister(cmd, "commands")
	if near := phrase.Nearest(given, names); near != "" {
		hint = fmt.Sprintf("did you mean %q? %s", near, hint)
	}
	return fmt.Errorf("there is no command `%s %s`; %s", cmd.CommandPath(), given, hint)
}

// Takes returns an error for a wrong number of arguments, with the usage line.
func Takes(least, most int) cobra.PositionalArgs {
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
