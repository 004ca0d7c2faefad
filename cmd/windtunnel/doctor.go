package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"windtunnel/lab/condition"
	"windtunnel/lab/experiment"
	"windtunnel/lab/phrase"
	"windtunnel/lab/probe"
	"windtunnel/lab/suite"
	"windtunnel/lab/testbed"
)

// distanceTime is the time for which doctor measures the CPU distance.
const distanceTime = 5 * time.Second

func doctorCommand() *cobra.Command {
	var brief, asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Show which tools, systems and suites can run here, and how to install missing programs",
		Args:  takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			facts := probe.Probe()
			if _, err := (&cpuOptions{distance: string(condition.Auto)}).place(facts); err != nil {
				facts.Warnings = append(facts.Warnings, err.Error())
			}
			if brief {
				return diagnoseBriefly(cmd.OutOrStdout(), facts)
			}
			d, err := diagnose(facts, distanceLine(facts, distanceTime))
			if err != nil {
				return err
			}
			if asJSON {
				return d.writeJSON(cmd.OutOrStdout())
			}
			return d.write(cmd.OutOrStdout())
		},
	}
	cmd.Flags().BoolVar(&brief, "brief", false, "Show only what the suite quick lacks here")
	cmd.Flags().BoolVar(&asJSON, "json", false, "Print everything as JSON (docs/operating.md lists the fields)")
	cmd.MarkFlagsMutuallyExclusive("brief", "json")
	return cmd
}

// leastBacklog is the smallest net.core.netdev_max_backlog with which a tunnel loses no
// frames in the CPU's backlog; see docs/method.md, "Where the wire drops".
const leastBacklog = 4000

// backlogWarning warns that the CPU's backlog can lose frames of a tunnel, because the
// wire shares the sender's CPU. It returns "" if the backlog is large enough, or if the
// wire has a separate CPU.
func backlogWarning(f *probe.Facts, l *testbed.Layout) string {
	const name = "net.core.netdev_max_backlog"
	n, err := strconv.Atoi(f.Sysctls[name])
	if err != nil || l == nil || len(l.Wire) > 0 || n >= leastBacklog {
		return ""
	}
	return fmt.Sprintf("%s is %d, and the wire shares the sender's CPU: tunnels can lose frames there (docs/method.md, \"Where the wire drops\"); set it with: sysctl -w %s=%d", name, n, name, leastBacklog)
}

// writeJSON prints the diagnosis for programs.
func (d *diagnosis) writeJSON(out io.Writer) error {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(d); err != nil {
		return fmt.Errorf("write the diagnosis as JSON: %w", err)
	}
	return nil
}

// diagnoseBriefly prints only the reasons why a first run cannot measure everything.
func diagnoseBriefly(out io.Writer, f *probe.Facts) error {
	plan, err := loadPlan("quick", suite.ExpandOptions{})
	if err != nil {
		return err
	}
	skips := experiment.Skips(plan, executorHere(f), f)
	if len(skips) == 0 {
		fmt.Fprintf(out, "everything that `run quick` needs is here: kernel %s, %s\n", f.Release, phrase.Count(len(f.UsableCPUs()), "CPU"))
	}
	for _, group := range groupSkips(skips) {
		fmt.Fprintln(out, wrapped("will skip "+group.String()+": "+group.why, "  "))
	}
	if reason, remedy, missing := f.Missing(probe.Backpressure); missing {
		fmt.Fprintln(out, wrapped(fmt.Sprintf("note: %s; %s", reason, remedy), "  "))
	}
	return nil
}
