package main

import (
	"context"
	"encoding/json"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"windtunnel/internal/cli"
	"windtunnel/internal/screen"
	"windtunnel/vrouter/api"
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

// describe prints an object as JSON, or its fields.
func describe(out io.Writer, output format, object any, fields inspect.Fields) error {
	return printAs(out, output, object, fields.String())
}

// printAs prints a value as JSON, or a text that shows it.
func printAs(out io.Writer, output format, value any, text string) error {
	if output == asJSON {
		return writeJSON(out, value)
	}
	_, err := io.WriteString(out, text)
	return err
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
	return printAs(out, output, rows, table.Render(screen.Of(out)))
}

// listing completes a command that shows all rows of one kind.
func listing[T any](cmd *cobra.Command, all func(*api.Client, context.Context) ([]T, error), table func([]T) inspect.Table) *cobra.Command {
	var output format
	cmd.Args = cli.Takes(0, 0)
	cmd.RunE = withAgent(func(ctx context.Context, cmd *cobra.Command, c *api.Client, _ []string) error {
		rows, err := all(c, ctx)
		if err != nil {
			return err
		}
		return show(cmd.OutOrStdout(), output, rows, table(rows))
	})
	outputFlag(cmd, &output)
	return cmd
}
