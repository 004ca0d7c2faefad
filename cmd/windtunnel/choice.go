package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// choice is the value of a flag that takes one of some words.
type choice struct {
	chosen *string
	words  []string
}

func (c choice) Type() string { return "string" }

func (c choice) String() string {
	if c.chosen == nil { // pflag compares with the zero value
		return ""
	}
	return *c.chosen
}

func (c choice) Set(given string) error {
	if !slices.Contains(c.words, given) {
		return fmt.Errorf("choose one of %s", strings.Join(c.words, ", "))
	}
	*c.chosen = given
	return nil
}

// formatFlag adds --format. of is the object of the command, such as "the list". The first
// format is the default.
func formatFlag(cmd *cobra.Command, chosen *string, of string, formats ...string) {
	*chosen = formats[0]
	cmd.Flags().Var(choice{chosen, formats}, "format", "Format of "+of+": "+strings.Join(formats, ", "))
}

// listFormat adds --format to a command that lists things.
func listFormat(cmd *cobra.Command, chosen *string) {
	formatFlag(cmd, chosen, "the list", "table", "json")
}

// writeJSON prints a value for programs, indented.
func writeJSON(out io.Writer, value any) error {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(value); err != nil {
		return fmt.Errorf("write the output as JSON: %w", err)
	}
	return nil
}
