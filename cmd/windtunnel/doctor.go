package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"unicode/utf8"

	"windtunnel/internal/cli"
	"windtunnel/internal/phrase"
	"windtunnel/internal/screen"
	"windtunnel/lab/condition"
	"windtunnel/lab/experiment"
	"windtunnel/lab/probe"
	"windtunnel/lab/report/export"
	"windtunnel/lab/suite"
	"windtunnel/lab/testbed"
)

// distanceTime is the time for which doctor measures the CPU distance.
const distanceTime = 5 * time.Second

func doctorCommand() *cobra.Command {
	var brief bool
	var format string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Show what this machine can measure, and how to install missing programs",
		Long: `Show what this machine can measure, and how to install missing programs.

The lists are separate commands: "windtunnel tools", "windtunnel systems" and
"windtunnel doctor suites". With --format json doctor prints all of them.`,
		Args: cli.Takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if brief && (cmd.Flags().Changed("format") || cmd.Flags().Changed("json")) {
				return cli.Misuse(errors.New("--brief and --format exclude each other: omit one"))
			}
			say := progress(cmd)
			say("testing kernel features and programs …")
			facts := probedFacts()
			if brief {
				say("")
				return diagnoseBriefly(cmd.OutOrStdout(), facts)
			}
			say(fmt.Sprintf("measuring the distance of the CPUs, %s …", distanceTime))
			distance := distanceLine(facts, distanceTime)
			say("expanding the suites …")
			d, err := diagnose(facts, distance)
			say("")
			switch {
			case err != nil:
				return err
			case format == "json":
				return export.JSON(cmd.OutOrStdout(), d)
			}
			return d.write(cmd.OutOrStdout())
		},
	}
	cmd.Flags().BoolVar(&brief, "brief", false, "Show only what the suite quick lacks here")
	formatFlag(cmd, &format, "the diagnosis", "table", "json")
	old := cmd.Flags().VarPF(cmd.Flags().Lookup("format").Value, "json", "", "Same as --format json") // scripts use it
	old.NoOptDefVal, old.Hidden = "json", true
	cmd.AddCommand(foundCommand("suites", "List the scenarios of each suite that cannot run here, and why", (*diagnosis).suites))
	return cmd
}

// foundCommand returns a command that lists one part of the diagnosis.
func foundCommand(use, short string, part func(*diagnosis) (list any, table string)) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use: use, Short: short, Args: cli.Takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			say := progress(cmd)
			say("testing kernel features and programs …")
			d, err := diagnose(probedFacts(), "")
			say("")
			if err != nil {
				return err
			}
			list, table := part(d)
			if format == "json" {
				return export.JSON(cmd.OutOrStdout(), list)
			}
			_, err = io.WriteString(cmd.OutOrStdout(), table)
			return err
		},
	}
	listFormat(cmd, &format)
	return cmd
}

// probedFacts returns the facts of this machine, with the CPUs that a run would use.
func probedFacts() *probe.Facts {
	facts := probe.Probe()
	if _, err := (&cpuOptions{distance: string(condition.Auto)}).choose(facts); err != nil {
		facts.Warnings = append(facts.Warnings, err.Error())
	}
	return facts
}

// progress returns a function that shows what a command does now, on one line of a terminal;
// an empty text removes the line. Without a terminal the function does nothing.
func progress(cmd *cobra.Command) func(string) {
	out := cmd.ErrOrStderr()
	if f, ok := out.(*os.File); !ok || !screen.IsTerminal(f) {
		return func(string) {}
	}
	shown := 0 // columns; blanks remove them, so that a log of the terminal has no escape sequence
	return func(text string) {
		fmt.Fprintf(out, "\r%*s\r%s", shown, "", text)
		shown = utf8.RuneCountInString(text)
	}
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
