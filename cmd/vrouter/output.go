package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"windtunnel/vrouter/inspect"
)

// format is what -o asks for.
type format string

const (
	asTable format = "table"
	asJSON  format = "json"
	asYAML  format = "yaml"
)

// formatFlag is -o: one of a command's formats.
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

// outputFlag adds -o to a command: its formats, the default first; table and
// JSON where none are given.
func outputFlag(cmd *cobra.Command, f *format, formats ...format) {
	if len(formats) == 0 {
		formats = []format{asTable, asJSON}
	}
	flag := formatFlag{chosen: f}
	for _, each := range formats {
		flag.of = append(flag.of, string(each))
	}
	*f = formats[0]
	cmd.Flags().VarP(flag, "output", "o", "how to print")
	cmd.RegisterFlagCompletionFunc("output", words(flag.of...))
}

// writeJSON prints a value as programs and people can read it.
func writeJSON(w io.Writer, value any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(value)
}

// optionsFor are how tables look where w leads: as wide as the terminal and in
// colour there, whole and plain in a file or pipe. NO_COLOR is heeded
// (no-color.org).
func optionsFor(w io.Writer) inspect.Options {
	file, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return inspect.Options{}
	}
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		width = 0
	}
	return inspect.Options{Width: width, Colour: os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// count is "1 port", "2 ports".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if stem, ok := strings.CutSuffix(noun, "y"); ok {
		return fmt.Sprintf("%d %sies", n, stem)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
