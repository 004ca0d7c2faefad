package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"windtunnel/internal/screen"
	"windtunnel/vrouter/inspect"
)

// format is an output format: the value of -o.
type format string

const (
	asTable format = "table"
	asJSON  format = "json"
	asYAML  format = "yaml"
)

// formatFlag is the flag -o. It accepts the command's formats.
type formatFlag struct {
	chosen *format
	of     []string
}

func (f formatFlag) String() string {
	if f.chosen == nil {
		return ""
	}
	return string(*f.chosen)
}

func (f formatFlag) Type() string { return strings.Join(f.of, "|") }

func (f formatFlag) Set(s string) error {
	if !slices.Contains(f.of, s) {
		return fmt.Errorf("write %s", strings.Join(f.of, " or "))
	}
	*f.chosen = format(s)
	return nil
}

// outputFlag adds -o to a command. The first format is the default. If formats
// is empty, the command has the formats table and JSON.
func outputFlag(cmd *cobra.Command, f *format, formats ...format) {
	if len(formats) == 0 {
		formats = []format{asTable, asJSON}
	}
	flag := formatFlag{chosen: f}
	for _, each := range formats {
		flag.of = append(flag.of, string(each))
	}
	*f = formats[0]
	cmd.Flags().VarP(flag, "output", "o", "Output format")
	cmd.RegisterFlagCompletionFunc("output", words(flag.of...))
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
