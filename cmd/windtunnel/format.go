package main

import (
	"strings"

	"github.com/spf13/cobra"

	"windtunnel/internal/cli"
)

// formatFlag adds --format. of is the object of the command, such as "the list". The first
// format is the default.
func formatFlag(cmd *cobra.Command, chosen *string, of string, formats ...string) {
	*chosen = formats[0]
	cmd.Flags().Var(cli.Choice{Chosen: chosen, Words: formats}, "format", "Format of "+of+": "+strings.Join(formats, ", "))
}

// listFormat adds --format to a command that lists things.
func listFormat(cmd *cobra.Command, chosen *string) {
	formatFlag(cmd, chosen, "the list", "table", "json")
}
