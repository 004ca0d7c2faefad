package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"windtunnel/lab/suite"
	"windtunnel/lab/system"
	"windtunnel/lab/tool"
	"windtunnel/lab/units"
	"windtunnel/suites"
)

func suitesCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "suites",
		Short: "List what can be run, one line each",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			for _, name := range suites.Names() {
				plan, err := loadPlan(name, suite.ExpandOptions{})
				if err != nil {
					return err
				}
				fmt.Fprintf(w, "%s\t%s × %s, about %s\t%s\n", name, units.Plural(len(plan.Scenarios), "scenario"), units.Plural(plan.Trials, "trial"),
					units.FormatDuration(float64(plan.Estimate())), plan.Title)
			}
			return w.Flush()
		},
	}
}

func schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of the suite language, for editors",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := cmd.OutOrStdout().Write(append(bytes.TrimSpace(suite.Schema()), '\n'))
			return err
		},
	}
}

// loadPlan expands a suite by its name, or a file by its path.
func loadPlan(name string, opts suite.ExpandOptions) (*suite.Plan, error) {
	file, data, err := readSuite(name)
	if err != nil {
		return nil, err
	}
	s, err := suite.Parse(file, data)
	if err != nil {
		return nil, err
	}
	opts.Vocabulary = suite.Vocabulary{Systems: system.Names(), Tools: tool.Names()}
	plan, err := s.Expand(opts)
	if err == nil {
		estimable(plan)
	}
	return plan, err
}

// estimable tells a plan how long its systems and tools take, and what sentences
// call the systems.
func estimable(plan *suite.Plan) {
	plan.SetUp, plan.Systems, plan.Traffic = system.SetUps(), system.Titles(), tool.Traffic(plan)
}

func readSuite(name string) (file string, data []byte, err error) {
	ext := filepath.Ext(name)
	if ext != ".yaml" && ext != ".yml" && !strings.Contains(name, "/") {
		data, err = suites.Read(name)
		return name + ".yaml", data, err
	}
	info, err := os.Stat(name)
	if err != nil {
		return "", nil, fmt.Errorf("read the suite: %w", err)
	}
	if info.Size() > suite.MaxFileBytes {
		return "", nil, fmt.Errorf("read the suite %s: it has %s; a suite has %s at most", name, units.FormatBytes(info.Size()), units.FormatBytes(suite.MaxFileBytes))
	}
	data, err = os.ReadFile(name)
	if err != nil {
		return "", nil, fmt.Errorf("read the suite: %w", err)
	}
	return name, data, nil
}
