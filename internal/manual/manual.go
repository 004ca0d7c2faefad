// Package manual writes the manual pages of a program.
package manual

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// Write writes a page for each command of cmd's program to a folder, which it makes if it is
// missing. It prints the number of files that are then in the folder.
func Write(cmd *cobra.Command, version, folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	top := cmd.Root()
	top.DisableAutoGenTag = true
	if err := doc.GenManTree(top, &doc.GenManHeader{Section: "1", Source: top.Name() + " " + version, Manual: top.Name()}, folder); err != nil {
		return fmt.Errorf("write the manual pages: %w", err)
	}
	pages, err := os.ReadDir(folder)
	if err == nil {
		fmt.Fprintf(cmd.OutOrStdout(), "wrote %d pages to %s\n", len(pages), folder)
	}
	return err
}
