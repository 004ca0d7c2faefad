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

	"windtunnel/internal/cli"

	"windtunnel/internal/phrase"
	"windtunnel/lab/condition"
	"windtunnel/lab/experiment"
	"windtunnel/lab/probe"
	"windtunnel/lab/report/export"
	"windtunnel/lab/suite"
	"windtunnel/lab/system"
	"windtunnel/lab/tool"
	"windtunnel/lab/units"
	"windtunnel/suites"
)

func suitesCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "suites",
		Short: "List the suites, and how much of each can run here",
		Args:  cli.Takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			say := progress(cmd)
			say("testing kernel features and programs …")
			facts := probe.Probe()
			// Choose the CPUs as `run` does. If that fails, the scenarios' reasons say so.
			_, _ = (&cpuOptions{distance: string(condition.Auto)}).choose(facts)
			list, err := readSuites(facts)
			say("")
			switch {
			case err != nil:
				return err
			case format == "json":
				return export.JSON(cmd.OutOrStdout(), list)
			}
			return writeSuites(cmd.OutOrStdout(), list)
		},
	}
	listFormat(cmd, &format)
	return cmd
}

// listedSuite is a suite of the list. Its fields are those of the JSON output.
type listedSuite struct {
	Name      string  `json:"name"`
	Title     string  `json:"title"`
	Scenarios int     `json:"scenarios"`
	Trials    int     `json:"trials"` // of each scenario
	Seconds   float64 `json:"seconds,omitempty"`
	// Runs is the number of scenarios that can run on this machine. It is nil without root: other
	// users cannot test the kernel's features.
	Runs *int `json:"runs,omitempty"`
}

func readSuites(facts *probe.Facts) (list []listedSuite, err error) {
	for _, name := range suites.Names() {
		plan, err := loadPlan(name, suite.ExpandOptions{})
		if err != nil {
			return nil, err
		}
		s := listedSuite{Name: name, Title: plan.Title, Scenarios: len(plan.Scenarios), Trials: plan.Trials}
		if facts.Root() {
			plan.Skipped = experiment.Skips(plan, executorHere(facts), facts)
			n := len(plan.Scenarios) - len(plan.Skipped)
			s.Runs = &n
		}
		s.Seconds = plan.Estimate().Seconds()
		list = append(list, s)
	}
	return list, nil
}

// writeSuites prints one line for each suite.
func writeSuites(out io.Writer, list []listedSuite) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	hint := ""
	for _, s := range list {
		here, runs := "", phrase.Count(s.Scenarios, "scenario")
		if s.Runs == nil {
			hint = "as root (sudo) the list says how much of each suite can run here"
		} else {
			here = runsHere(*s.Runs, s.Scenarios) + "\t"
			if *s.Runs < s.Scenarios {
				hint = "`windtunnel doctor suites` says why scenarios cannot run here, and `windtunnel doctor` how to change that"
				if *s.Runs > 0 {
					runs = fmt.Sprintf("%d of %s", *s.Runs, runs)
				}
			}
		}
		size := fmt.Sprintf("%s × %s", runs, phrase.Count(s.Trials, "trial"))
		if s.Seconds > 0 {
			size += ", about " + units.FormatDuration(s.Seconds*1e9)
		}
		fmt.Fprintf(w, "%s\t%s\t%s%s\n", s.Name, size, here, s.Title)
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
		Args:  cli.Takes(0, 0),
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
	opts.Vocabulary = suite.Vocabulary{Systems: system.Names(), Tools: tool.Names(), MTUs: system.LeastMTUs()}
	s, err := suite.ParseFor(file, data, opts)
	if err != nil {
		return nil, err
	}
	plan, err := s.Expand(opts)
	switch {
	case err == nil:
		estimable(plan)
	case !errors.As(err, new(suite.Errors)): // a flag is wrong, not the file
		err = cli.Misuse(err)
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
