package main

import (
	"fmt"
	"io"
	"strings"

	"charm.land/lipgloss/v2"

	"windtunnel/internal/phrase"
	"windtunnel/internal/screen"
	"windtunnel/lab/probe"
	"windtunnel/lab/units"
)

// textWidth is the largest width of a line of the text output, in columns.
const textWidth = 100

// wrapped breaks a line into lines of at most textWidth columns. All lines but the
// first begin with the indent.
func wrapped(line, indent string) string { return screen.Wrap(line, textWidth, indent) }

// entry prints a label and a line to the right of it. If the line wraps, its
// continuation is indented by the label's width.
func entry(out io.Writer, label, line string) {
	indent := strings.Repeat(" ", lipgloss.Width(label))
	fmt.Fprintln(out, strings.TrimRight(label+screen.Wrap(line, textWidth, indent), " "))
}

// write prints the diagnosis for a person: the machine, how much can run here, and what is
// missing.
func (d *diagnosis) write(out io.Writer) error {
	var b strings.Builder
	d.writeMachine(&b)
	d.writeSummary(&b)
	d.writeRemedies(&b)
	_, err := io.WriteString(out, b.String())
	return err
}

// writeSummary prints how much can run here, and the kernel features that do not work.
func (d *diagnosis) writeSummary(b *strings.Builder) {
	tools, systems, whole, some := 0, 0, 0, 0
	for _, t := range d.Tools {
		if t.Runs {
			tools++
		}
	}
	for _, s := range d.Systems {
		if s.Runs {
			systems++
		}
	}
	for _, s := range d.Suites {
		switch len(s.Skipped) {
		case 0:
			whole++
		case s.Scenarios:
		default:
			some++
		}
	}
	works, lines := 0, strings.Builder{}
	for _, x := range d.Facts.Features {
		switch {
		case x.Works:
			works++
		case x.Untried:
			row(&lines, "?", x.Name, x.Reason)
		default:
			row(&lines, "no", x.Name, x.Reason)
		}
	}
	entry(b, "suites    ", fmt.Sprintf("%d of %d run here, and a part of %d more; list: windtunnel doctor suites", whole, len(d.Suites), some))
	entry(b, "systems   ", fmt.Sprintf("%d of %d run here; list: windtunnel systems", systems, len(d.Systems)))
	entry(b, "tools     ", fmt.Sprintf("%d of %d run here; list: windtunnel tools", tools, len(d.Tools)))
	entry(b, "features  ", fmt.Sprintf("%d of %d features of the kernel and the machine work", works, len(d.Facts.Features)))
	if lines.Len() > 0 {
		b.WriteString("\nFeatures that do not work\n" + lines.String())
	}
}

// tools returns the list of tools, and its table.
func (d *diagnosis) tools() (list any, table string) {
	var b strings.Builder
	for _, t := range d.Tools {
		d.writeTool(&b, t)
	}
	return d.Tools, b.String()
}

// systems returns the list of systems, and its table.
func (d *diagnosis) systems() (list any, table string) {
	var b strings.Builder
	for _, s := range d.Systems {
		if s.Runs {
			row(&b, "yes", s.Name, s.Describe)
		} else {
			row(&b, "no", s.Name, s.Describe+"; lacks "+strings.Join(s.Lacks, ", "))
		}
	}
	return d.Systems, b.String()
}

// suites returns the list of suites, and its table.
func (d *diagnosis) suites() (list any, table string) {
	var b strings.Builder
	for _, s := range d.Suites {
		s.write(&b)
	}
	return d.Suites, b.String()
}

func (d *diagnosis) writeMachine(b *strings.Builder) {
	f := d.Facts
	entry(b, "machine   ", fmt.Sprintf("%s, %s (%s), %s, %s", f.CPUModel, phrase.Count(len(f.UsableCPUs()), "CPU"), probe.FormatCPUList(f.UsableCPUs()), units.FormatBytes(int64(f.MemoryBytes)), f.OS))
	kernel := fmt.Sprintf("%s, clock %s, %s, IRQ time accounting: %s", f.Release, f.ClockSource, f.CongestionControl, f.IRQTimeAccounting)
	if f.Virtualization != "" {
		kernel += "; virtualised: " + f.Virtualization + ", so other guests can take CPU time (see the steal figures)"
	}
	entry(b, "kernel    ", kernel)
	if !f.Root() {
		entry(b, "root      ", "no: measuring makes network namespaces and devices, and features are tried with them; use sudo")
	}
	if d.Layout == nil {
		entry(b, "testbed   ", "none: "+d.noLayout)
	} else {
		entry(b, "testbed   ", fmt.Sprintf("node a on CPUs %s, node b on %s, the fabric on %s, the engine on %s", probe.FormatCPUList(d.Layout.Nodes[0]),
			probe.FormatCPUList(d.Layout.Nodes[1]), orShared(d.Layout.Wire), orShared(d.Layout.Engine)))
	}
	entry(b, "distance  ", d.Distance)
	for _, w := range f.Warnings {
		entry(b, "warning   ", w)
	}
}

func orShared(cpus []int) string {
	if len(cpus) == 0 {
		return "the nodes' CPUs"
	}
	return probe.FormatCPUList(cpus)
}

// row prints one line of a list: yes, no or ?, the name, and a text.
func row(b *strings.Builder, mark, name, text string) {
	entry(b, fmt.Sprintf("  %-3s  %-18s  ", mark, name), text)
}

func (d *diagnosis) writeTool(b *strings.Builder, t foundTool) {
	if len(t.Programs) == 0 {
		row(b, "yes", t.Name, "built in")
	}
	for _, p := range t.Programs {
		if m := d.findMissing(p.Name); m != nil {
			row(b, "no", p.Name, m.Reason)
			continue
		}
		row(b, "yes", p.Name, p.Version)
	}
}

func (s foundSuite) write(b *strings.Builder) {
	runs := s.Scenarios - len(s.Skipped)
	mark := "yes"
	if runs == 0 {
		mark = "no"
	}
	row(b, mark, s.Name, fmt.Sprintf("%d of %s run here", runs, phrase.Count(s.Scenarios, "scenario")))
	for _, group := range groupSkips(s.Skipped) {
		entry(b, strings.Repeat(" ", 27), fmt.Sprintf("skips %s: %s", group, group.why))
	}
}

// String names the scenarios, or the first few of many.
func (g skipGroup) String() string { return phrase.Some(g.ids, 3) }

// writeRemedies prints how to install missing programs and features: each remedy once,
// and one apt-get command for all Debian packages.
func (d *diagnosis) writeRemedies(b *strings.Builder) {
	var order []string
	names := map[string][]string{}
	for _, m := range d.Missing {
		how := m.explained()
		if how == "" {
			continue
		}
		if names[how] == nil {
			order = append(order, how)
		}
		names[how] = append(names[how], m.Name)
	}
	if len(order) > 0 {
		b.WriteString("\nHow to get what is missing\n")
	}
	for _, how := range order {
		fmt.Fprintln(b, "  "+screen.Wrap(strings.Join(names[how], ", ")+": "+how, textWidth-2, "    "))
	}
	if len(d.Packages) == 0 {
		return
	}
	b.WriteString("\nInstall everything that apt has\n")
	fmt.Fprintln(b, "  "+strings.ReplaceAll(screen.Wrap("apt-get install --no-install-recommends "+strings.Join(d.Packages, " "), textWidth-4, "    "), "\n", " \\\n"))
}
