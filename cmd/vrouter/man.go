package main

import (
	"github.com/spf13/cobra"

	"windtunnel/internal/manual"
)

func manCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "man FOLDER",
		Short:   "Write manual pages for all commands",
		Example: "  vrouter man /usr/local/share/man/man1",
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return manual.Write(cmd, version, args[0]) },
	}
}
