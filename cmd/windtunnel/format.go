package main

import (
	"io"
	"strings"

	"github.com/spf13/cobra"

	"windtunnel/internal/cli"
	"windtunnel/lab/report/document"
	"windtunnel/lab/report/export"
	"windtunnel/lab/report/html"
	"windtunnel/lab/report/markdown"
	"windtunnel/lab/report/text"
)

// documentFormats are the forms of a comparison and of a trend.
var documentFormats = []string{"table", "json", "markdown", "html"}

// writeDocument writes a comparison or a trend in one of documentFormats.
func writeDocument(w io.Writer, format string, d interface{ Document() document.Document }) error {
	switch format {
	case "json":
		return export.JSON(w, d)
	case "markdown":
		return markdown.Write(w, d.Document())
	case "html":
		return html.Write(w, d.Document())
	}
	return text.Write(w, d.Document(), tableOptions(w))
}

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
