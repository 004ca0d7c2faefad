package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

func manCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "man FOLDER",
		Short:   "Write manual pages for all commands",
		Example: "  vrouter man /usr/local/share/man/man1",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			top := cmd.Root()
			top.DisableAutoGenTag = true
			if err := doc.GenManTree(top, &doc.GenManHeader{Section: "1", Source: "vrouter " + version, Manual: "vrouter"}, args[0]); err != nil {
				return fmt.Errorf("write the manual pages: %w", err)
			}
			pages, err := os.ReadDir(args[0])
			if err == nil {
				fmt.Fprintf(cmd.OutOrStdout(), "wrote %d pages to %s\n", len(pages), args[0])
			}
			return err
		},
	}
}
