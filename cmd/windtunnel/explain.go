package main

import (
	"strings"

	"github.com/spf13/cobra"

	"windtunnel/internal/cli"

	"windtunnel/lab/report"
	"windtunnel/lab/report/text"
)

func explainCommand() *cobra.Command {
	var db string
	cmd := &cobra.Command{
		Use:   "explain [RUN]",
		Short: "Explain in sentences what a run shows (default: the latest run)",
		Long: `Explain in sentences what a run shows: the cost of each step of its ladders,
the result of each hypothesis, what stays undecided and why, and how many of its
trials count.`,
		Example: `  windtunnel explain
  windtunnel explain 20261121-0930`,
		Args: cli.Takes(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := loadReport(db, strings.Join(args, ""))
			if err != nil {
				return err
			}
			return text.Write(cmd.OutOrStdout(), report.Explain(r), tableOptions(cmd.OutOrStdout()))
		},
	}
	dbFlag(cmd, &db)
	return cmd
}
