package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"windtunnel/lab/condition"
	"windtunnel/lab/experiment"
	"windtunnel/lab/probe"
	"windtunnel/lab/suite"
	"windtunnel/lab/system"
	"windtunnel/lab/testbed"
	"windtunnel/lab/tool"
	"windtunnel/lab/units"
	"windtunnel/suites"
)

func doctorCommand() *cobra.Command {
	var brief bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "What this machine can measure: CPUs, kernel features, tools, systems, what each suite would skip and why",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			facts := probe.Probe()
			if _, err := (&cpuOptions{distance: string(condition.Auto)}).place(facts); err != nil {
				facts.Warnings = append(facts.Warnings, err.Error())
			}
			if brief {
				return diagnoseBriefly(cmd.OutOrStdout(), facts)
			}
			return diagnose(cmd.OutOrStdout(), facts)
		},
	}
	cmd.Flags().BoolVar(&brief, "brief", false, "only what is missing for `run quick`")
	return cmd
}

// diagnose prints everything that was found.
func diagnose(out io.Writer, f *probe.Facts) error {
	fmt.Fprintf(out, "machine   %s, %d CPUs (%s), %s, %s\n", f.CPUModel, len(f.UsableCPUs()), probe.FormatCPUList(f.UsableCPUs()), units.FormatBytes(int64(f.MemoryBytes)), f.OS)
	fmt.Fprintf(out, "kernel    %s, clock %s, %s, IRQ time accounting: %s\n", f.Release, f.ClockSource, f.CongestionControl, f.IRQTimeAccounting)
	if f.Virtualization != "" {
		fmt.Fprintf(out, "          virtualised: %s; other guests can take CPU time, see the steal figures\n", f.Virtualization)
	}
	if !f.Root() {
		fmt.Fprintln(out, "root      no: measuring makes network namespaces and devices; use sudo")
	}
	printLayout(out, f)
	fmt.Fprintf(out, "distance  %s\n", distanceLine(f, 5*time.Second))
	for _, w := range f.Warnings {
		fmt.Fprintf(out, "warning   %s\n", w)
	}
	fmt.Fprintln(out, "\nKernel features")
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, x := range f.Features {
		if x.Works {
			fmt.Fprintf(w, "  yes\t%s\t%s\t\n", x.Name, x.What)
			continue
		}
		fmt.Fprintf(w, "  NO\t%s\t%s\t%s; %s\n", x.Name, x.What, x.Reason, x.Remedy)
	}
	w.Flush()
	fmt.Fprintln(out, "\nTools")
	w = tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, t := range tool.Registry() {
		printTool(w, f, t)
	}
	w.Flush()
	printSystems(out, f)
	return printSkips(out, f)
}

func printSystems(out io.Writer, f *probe.Facts) {
	fmt.Fprintln(out, "\nSystems")
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, s := range system.Registry() {
		if lacks := experiment.LacksFor(s, f); len(lacks) > 0 {
			fmt.Fprintf(w, "  no\t%s\t%s\n", s.Name(), strings.Join(lacks, "; "))
			continue
		}
		fmt.Fprintf(w, "  yes\t%s\t%s\n", s.Name(), s.Describe())
	}
	w.Flush()
}

func printLayout(out io.Writer, f *probe.Facts) {
	l, err := testbed.PlanCPUs(f.UsableCPUs(), 2)
	if err != nil {
		fmt.Fprintf(out, "testbed   none: %v\n", err)
		return
	}
	fmt.Fprintf(out, "testbed   node a on CPUs %s, node b on %s, the fabric on %s, the engine on %s\n",
		probe.FormatCPUList(l.Nodes[0]), probe.FormatCPUList(l.Nodes[1]), orShared(l.Wire), orShared(l.Engine))
}

func orShared(cpus []int) string {
	if len(cpus) == 0 {
		return "the nodes' CPUs"
	}
	return probe.FormatCPUList(cpus)
}

func printTool(w io.Writer, f *probe.Facts, t tool.Tool) {
	programs := f.Programs(t.Programs())
	if len(programs) == 0 {
		fmt.Fprintf(w, "  yes\t%s\t%s\n", t.Name(), "built in")
		return
	}
	for _, p := range programs {
		if p.Path == "" {
			fmt.Fprintf(w, "  no\t%s\tget it with: %s\n", p.Name, install(p.Package))
			continue
		}
		fmt.Fprintf(w, "  yes\t%s\t%s\n", p.Name, p.Version)
	}
}

// install is the command that gets a Debian package, where it is one.
func install(pkg string) string {
	if strings.HasPrefix(pkg, "none") {
		return strings.TrimPrefix(pkg, "none; ")
	}
	return "apt-get install " + pkg
}

// printSkips says what each suite could not run here.
func printSkips(out io.Writer, f *probe.Facts) error {
	fmt.Fprintln(out, "\nSuites")
	for _, name := range suites.Names() {
		plan, err := loadPlan(name, suite.ExpandOptions{})
		if err != nil {
			return err
		}
		skips := experiment.Skips(plan, f)
		fmt.Fprintf(out, "  %s: %d of %d scenarios run here\n", name, len(plan.Scenarios)-len(skips), len(plan.Scenarios))
		for _, group := range groupSkips(skips) {
			fmt.Fprintf(out, "    skips %s: %s\n", group, group.why)
		}
	}
	return nil
}

// String names the scenarios, or the first few of many.
func (g skipGroup) String() string {
	const named = 3
	list := strings.Join(g.ids[:min(named, len(g.ids))], ", ")
	if more := len(g.ids) - named; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return list
}

// diagnoseBriefly says only what stands in the way of a first run.
func diagnoseBriefly(out io.Writer, f *probe.Facts) error {
	plan, err := loadPlan("quick", suite.ExpandOptions{})
	if err != nil {
		return err
	}
	skips := experiment.Skips(plan, f)
	if len(skips) == 0 {
		fmt.Fprintf(out, "everything that `run quick` needs is here: kernel %s, %d CPUs\n", f.Release, len(f.UsableCPUs()))
	}
	for _, id := range sortedKeys(skips) {
		fmt.Fprintf(out, "will skip %s: %s\n", id, skips[id])
	}
	if reason, remedy, missing := f.Missing(probe.Backpressure); missing {
		fmt.Fprintf(out, "note: %s; %s\n", reason, remedy)
	}
	return nil
}
