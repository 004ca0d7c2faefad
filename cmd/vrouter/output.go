package main

import (
	"encoding/json"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"windtunnel/internal/cli"
	"windtunnel/internal/screen"
	"windtunnel/vrouter/inspect"
)

// format is an output format: the value of -o.
type format = string

const (
	asTable format = "table"
	asJSON  format = "json"
	asYAML  format = "yaml"
)

// outputFlag adds -o to a command. The first format is the default. If formats
// is empty, the command has the formats table and JSON.
func outputFlag(cmd *cobra.Command, f *format, formats ...format) {
	if len(formats) == 0 {
		formats = []format{asTable, asJSON}
	}
	*f = formats[0]
	cmd.Flags().VarP(cli.Choice{Chosen: f, Words: formats}, "output", "o", "Output format: "+strings.Join(formats, ", "))
	cmd.RegisterFlagCompletionFunc("output", words(formats...))
}

// writeJSON prints a value as indented JSON.
func writeJSON(w io.Writer, value any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(value)
}

// show prints rows as JSON, or the table that shows them.
func show(out io.Writer, output format, rows any, table inspect.Table) error {
	if output == asJSON {
		return writeJSON(out, rows)
	}
	_, err := io.WriteString(out, table.Render(screen.Of(out)))
	return err
}
