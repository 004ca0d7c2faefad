package main

import (
	"fmt"
	"io"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/spf13/cobra"

	"windtunnel/internal/screen"
	"windtunnel/lab/report/model"
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
		Args: takes(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := loadReport(db, strings.Join(args, ""))
			if err != nil {
				return err
			}
			return explain(cmd.OutOrStdout(), r)
		},
	}
	dbFlag(cmd, &db)
	return cmd
}

// explain writes the explanation at the terminal's width.
func explain(w io.Writer, r *model.Report) error {
	o := tableOptions(w)
	title := func(text string) string { return text }
	if o.Colour {
		title = func(text string) string { return lipgloss.NewStyle().Bold(true).Render(text) }
	}
	var b strings.Builder
	b.WriteString(title(screen.Wrap(r.Run.Title+" ("+r.Run.ID+")", o.Width, "")) + "\n")
	b.WriteString(screen.Wrap(r.Run.Command(), o.Width, "  ") + "\n")
	for _, s := range r.Explain() {
		b.WriteString("\n" + title(screen.Wrap(s.Title, o.Width, "")) + "\n")
		for _, p := range s.Paragraphs {
			b.WriteString(screen.Wrap("• "+p, o.Width, "  ") + "\n")
		}
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write the explanation of run %s: %w", r.Run.ID, err)
	}
	return nil
}
