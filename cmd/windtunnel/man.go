package main

import (
	"github.com/spf13/cobra"

	"windtunnel/internal/manual"
)

func manCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "man FOLDER",
		Short: "Write manual pages for all commands",
		Args:  takes(1, 1),
		RunE:  func(cmd *cobra.Command, args []string) error { return manual.Write(cmd, version, args[0]) },
	}
}
