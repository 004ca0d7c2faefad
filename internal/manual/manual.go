// Package manual writes the manual pages of a program.
package manual

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"
)

// Section is a section of every page.
type Section struct {
	Title   string
	Entries []Entry
}

// Entry is a name in a section, such as a file, and its description.
type Entry struct{ Name, Text string }

// ExitStatus returns the manual page's section about exit codes: those of both programs, followed by more.
func ExitStatus(more ...Entry) Section {
	return Section{Title: "EXIT STATUS", Entries: append([]Entry{
		{Name: "0", Text: "Success."},
		{Name: "1", Text: "Failure."},
		{Name: "2", Text: "Wrong usage."},
		{Name: "130", Text: "Interrupted by SIGINT, SIGTERM or SIGHUP."},
	}, more...)}
}

// Write writes a page for each command of cmd's program to a folder, which it makes if it is
// missing. The sections stand before SEE ALSO. Write prints the number of pages.
func Write(cmd *cobra.Command, version, folder string, sections ...Section) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	top := cmd.Root()
	top.DisableAutoGenTag = true
	header := doc.GenManHeader{Section: "1", Source: top.Name() + " " + version, Manual: top.Name()}
	pages, err := writeBelow(top, header, folder, render(sections))
	if err != nil {
		return fmt.Errorf("write the manual pages: %w", err)
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "wrote %d pages to %s\n", pages, folder)
	return err
}

// writeBelow writes the pages of a command and of all commands below it. It returns their number.
func writeBelow(cmd *cobra.Command, header doc.GenManHeader, folder, sections string) (pages int, err error) {
	for _, below := range cmd.Commands() {
		if !below.IsAvailableCommand() || below.IsAdditionalHelpTopicCommand() {
			continue
		}
		n, err := writeBelow(below, header, folder, sections)
		if err != nil {
			return 0, err
		}
		pages += n
	}
	var b bytes.Buffer
	if err := doc.GenMan(cmd, &header, &b); err != nil { // it completes the header, a copy
		return 0, err
	}
	const last = "\n.SH SEE ALSO\n"
	page := strings.Replace(withoutZeros(cmd, b.String()), last, "\n"+sections+last, 1)
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "-") + "." + header.Section
	return pages + 1, os.WriteFile(filepath.Join(folder, name), []byte(page), 0o644)
}

// zeroDefault matches the line of a flag whose default is the zero value of its type.
var zeroDefault = regexp.MustCompile(`(?m)^(\\fB-.*\\fB--|\\fB--)([a-z0-9-]+)\\fP(=(?:""|0|0s|\[\])?|\[=false\])$`)

// withoutZeros replaces defaults that are zero values by the type of the flag's value: they mean
// that the flag is not set.
func withoutZeros(cmd *cobra.Command, page string) string {
	return zeroDefault.ReplaceAllStringFunc(page, func(line string) string {
		part := zeroDefault.FindStringSubmatch(line)
		flag := part[1] + part[2] + `\fP`
		if f := cmd.Flag(part[2]); f != nil {
			if kind, _ := pflag.UnquoteUsage(f); kind != "" {
				flag += `=\fI` + kind + `\fP`
			}
		}
		return flag
	})
}

func render(sections []Section) string {
	var b strings.Builder
	for _, s := range sections {
		fmt.Fprintf(&b, ".SH %s\n", s.Title)
		for _, e := range s.Entries {
			fmt.Fprintf(&b, ".TP\n\\fB%s\\fP\n%s\n", escape(e.Name), escape(e.Text))
		}
	}
	return b.String()
}

// escape protects backslashes, which begin a request in a page.
func escape(text string) string { return strings.ReplaceAll(text, `\`, `\e`) }
