package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"windtunnel/lab/condition"
	"windtunnel/lab/experiment"
	"windtunnel/lab/phrase"
	"windtunnel/lab/probe"
	"windtunnel/lab/suite"
	"windtunnel/lab/system"
	"windtunnel/lab/tool"
	"windtunnel/lab/units"
	"windtunnel/suites"
)

func suitesCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "suites",
		Short: "List the suites, and how much of each can run here",
		Args:  takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			facts := probe.Probe()
			// Choose the CPUs as `run` does. If that fails, the scenarios' reasons say so.
			_, _ = (&cpuOptions{distance: string(condition.Auto)}).place(facts)
			return listSuites(cmd.OutOrStdout(), facts)
		},
	}
}

// listSuites prints one line for each suite. For root the line says how many of the
// suite's scenarios can run on this machine: other users cannot test the kernel's
// features.
func listSuites(out io.Writer, facts *probe.Facts) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	hint := ""
	if !facts.Root() {
		hint = "as root (sudo) the list says how much of each suite can run here"
	}
	for _, name := range suites.Names() {
		plan, err := loadPlan(name, suite.ExpandOptions{})
		if err != nil {
			return err
		}
		here := ""
		if facts.Root() {
			plan.Skipped = experiment.Skips(plan, executorHere(facts), facts)
			here = runsHere(len(plan.Scenarios)-len(plan.Skipped), len(plan.Scenarios)) + "\t"
			if len(plan.Skipped) > 0 {
				hint = "`windtunnel doctor` says why scenarios cannot run here, and how to change that"
			}
		}
		runs := phrase.Count(len(plan.Scenarios), "scenario")
		if n := len(plan.Scenarios) - len(plan.Skipped); n > 0 && n < len(plan.Scenarios) {
			runs = fmt.Sprintf("%d of %s", n, runs)
		}
		size := fmt.Sprintf("%s × %s", runs, phrase.Count(plan.Trials, "trial"))
		if t := plan.Estimate(); t > 0 {
			size += ", about " + units.FormatDuration(float64(t))
		}
		fmt.Fprintf(w, "%s\t%s\t%s%s\n", name, size, here, plan.Title)
	}
	if err := w.Flush(); err != nil || hint == "" {
		return err
	}
	_, err := fmt.Fprintln(out, "\n"+hint)
	return err
}

// runsHere says whether all, some or none of a suite's scenarios can run on this machine.
// n is their number.
func runsHere(n, of int) string {
	switch n {
	case of:
		return "all run here"
	case 0:
		return "none runs here"
	}
	return "some run here"
}

func schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of the suite language, for editors",
		Args:  takes(0, 0),
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
	return expand(file, data, opts)
}

// expand makes the plan of a suite's text. file is the name of the text in errors.
func expand(file string, data []byte, opts suite.ExpandOptions) (*suite.Plan, error) {
	opts.Vocabulary = suite.Vocabulary{Systems: system.Names(), Tools: tool.Names()}
	s, err := suite.ParseFor(file, data, opts.Vocabulary)
	if err != nil {
		return nil, err
	}
	plan, err := s.Expand(opts)
	if err == nil {
		estimable(plan)
	}
	return plan, err
}

// estimable sets the fields of a plan that depend on systems and tools: their
// set-up times, and the systems' titles.
func estimable(plan *suite.Plan) {
	plan.SetUp, plan.Systems, plan.Traffic = system.SetUps(), system.Titles(), tool.Traffic(plan)
}

func readSuite(name string) (file string, data []byte, err error) {
	ext := filepath.Ext(name)
	if ext != ".yaml" && ext != ".yml" && !strings.Contains(name, "/") {
		if names := suites.Names(); !slices.Contains(names, name) {
			return "", nil, fmt.Errorf("there is no suite %q; %s. A file needs the ending .yaml", name, suite.Suggest(name, "suites", names))
		}
		data, err = suites.Read(name)
		return name + ".yaml", data, err
	}
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil, fmt.Errorf("read the suite %s: there is no such file; check the path, or choose one of `windtunnel suites`", name)
	}
	if err != nil {
		return "", nil, fmt.Errorf("read the suite: %w", err)
	}
	if info.IsDir() {
		return "", nil, fmt.Errorf("read the suite %s: it is a directory; name a file in it, such as %s", name, filepath.Join(name, "suite.yaml"))
	}
	if info.Size() > suite.MaxFileBytes {
		return "", nil, fmt.Errorf("read the suite %s: it has %s, and a suite may have %s: split it into several", name, units.FormatBytes(info.Size()), units.FormatBytes(suite.MaxFileBytes))
	}
	data, err = os.ReadFile(name)
	if err != nil {
		return "", nil, fmt.Errorf("read the suite: %w", err)
	}
	return name, data, nil
}
