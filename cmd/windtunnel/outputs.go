package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"windtunnel/internal/cli"

	"windtunnel/lab/results"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

func outputCommand() *cobra.Command {
	var db string
	cmd := &cobra.Command{
		Use:   "output RUN SCENARIO",
		Short: "Print the stored command lines and outputs of the tools of a scenario's trials",
		Example: `  windtunnel output latest raw/stream
  windtunnel output 20261121-0930 vxlan/rr | less`,
		Args: cli.Takes(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			store, err := openStore(db, true)
			if err != nil {
				return err
			}
			defer store.Close()
			return writeOutputs(cmd.OutOrStdout(), store, args[0], args[1])
		},
	}
	dbFlag(cmd, &db)
	return cmd
}

// writeOutputs writes the outputs of each trial of a scenario.
func writeOutputs(w io.Writer, store *results.Store, run, scenario string) error {
	data, err := store.Load(run)
	if err != nil {
		return err
	}
	found := false
	for i := range data.Samples {
		s := &data.Samples[i]
		if s.Scenario != scenario {
			continue
		}
		found = true
		if s.Outputs, err = store.LoadOutputs(data.IDs[i]); err != nil {
			return err
		}
		if _, err := io.WriteString(w, outputsOf(s)); err != nil {
			return fmt.Errorf("write the outputs of %s in run %s: %w", scenario, data.Run.ID, err)
		}
	}
	if !found {
		return fmt.Errorf("run %s has no trial of scenario %q; %s", data.Run.ID, scenario, suite.Suggest(scenario, "its scenarios", data.Plan.IDs()))
	}
	return nil
}

// outputsOf returns the outputs of a trial as text. Each process has a heading.
func outputsOf(s *sample.Sample) string {
	var b strings.Builder
	fmt.Fprintf(&b, "=== %s, block %d, attempt %d\n", s.Scenario, s.Block+1, s.Attempt+1)
	if s.Failure != nil {
		fmt.Fprintln(&b, s.Failure.String())
	}
	for _, c := range s.Commands {
		fmt.Fprintf(&b, "%s on %s: %s\n", c.Role, c.On, strings.Join(c.Argv, " "))
	}
	for _, o := range s.Outputs {
		fmt.Fprintf(&b, "--- %s, exit status %d\n", o.Role, o.Exit)
		for _, text := range []string{o.Stdout, o.Stderr} {
			if text != "" {
				b.WriteString(strings.TrimSuffix(text, "\n") + "\n")
			}
		}
	}
	return b.String() + "\n"
}
