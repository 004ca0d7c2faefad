package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"windtunnel/internal/cli"
	"windtunnel/internal/phrase"
	"windtunnel/lab/suite"
	"windtunnel/lab/system"
)

// oneLine is an experiment that the command line describes, without a file.
type oneLine struct {
	systems, workloads []string
	streams            int
}

// oneLineSuite is the name under which such an experiment is stored.
const oneLineSuite = "command-line"

func (l *oneLine) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringSliceVar(&l.systems, "system", nil, "Run these systems without a suite, separated by commas; the first is the baseline")
	f.StringSliceVar(&l.workloads, "workload", nil, "Traffic of --system, separated by commas: "+strings.Join(kinds(), ", ")+" (default tcp_stream)")
	f.IntVar(&l.streams, "streams", 0, "Number of simultaneous connections for each --workload (default 1)")
}

func kinds() []string {
	var names []string
	for _, k := range suite.Kinds() {
		names = append(names, string(k))
	}
	return names
}

// first returns the name of the first flag that was given, for messages; "" if none
// was given.
func (l *oneLine) first() string {
	switch {
	case len(l.systems) > 0:
		return "--system"
	case len(l.workloads) > 0:
		return "--workload"
	case l.streams != 0:
		return "--streams"
	}
	return ""
}

func (l *oneLine) empty() bool { return l.first() == "" }

// plan expands the experiment as if it were a suite file.
func (l *oneLine) plan(opts suite.ExpandOptions) (*suite.Plan, error) {
	if err := cli.Misuse(l.check()); err != nil {
		return nil, err
	}
	if opts.Short {
		return nil, cli.Misuse(fmt.Errorf("--short and %s exclude each other: only a suite has a short form; give --trials and --duration", l.first()))
	}
	return expand("the command line", []byte(l.yaml()), opts)
}

// check returns an error for values that the suite language would refuse. The
// error names the flag; the suite's own error would name a line of YAML.
func (l *oneLine) check() error {
	if len(l.systems) == 0 {
		return fmt.Errorf("%s requires --system: add it, such as --system raw,bridge", l.first())
	}
	if len(l.workloads) == 0 {
		l.workloads = []string{string(suite.TCPStream)}
	}
	if err := checkList("--system", "systems", l.systems, system.Names()); err != nil {
		return err
	}
	if err := checkList("--workload", "workloads", l.workloads, kinds()); err != nil {
		return err
	}
	if l.streams < 0 || l.streams > suite.MostStreams {
		return fmt.Errorf("--streams %d is out of bounds: choose 1 to %d", l.streams, suite.MostStreams)
	}
	l.streams = max(l.streams, 1)
	return nil
}

// checkList refuses unknown and repeated names in the value of a flag.
func checkList(flag, kind string, given, known []string) error {
	for i, name := range given {
		given[i] = strings.TrimSpace(name)
		if !slices.Contains(known, given[i]) {
			return fmt.Errorf("%s %s: the name is unknown; %s", flag, given[i], suite.Suggest(given[i], kind, known))
		}
		if slices.Contains(given[:i], given[i]) {
			return fmt.Errorf("%s %s: the name is given twice; remove one", flag, given[i])
		}
	}
	return nil
}

// yaml returns the experiment in the suite language. The first system is the baseline
// of the others.
func (l *oneLine) yaml() string {
	var b strings.Builder
	systems, traffic := strings.Join(l.systems, ", "), strings.Join(l.workloads, ", ")
	const named = 6 // the title has the number of systems instead of more names than this
	if len(l.systems) > named {
		systems = phrase.Count(len(l.systems), "system")
	}
	if l.streams > 1 {
		traffic += " with " + phrase.Count(l.streams, "stream")
	}
	fmt.Fprintf(&b, "suite: %s\ntitle: %q\nworkloads:\n", oneLineSuite, systems+": "+traffic)
	for _, kind := range l.workloads {
		fmt.Fprintf(&b, "  %s: {kind: %s, streams: %d}\n", kind, kind, l.streams)
	}
	fmt.Fprintf(&b, "scenarios:\n  - system: [%s]\n    workload: [%s]\n", strings.Join(l.systems, ", "), strings.Join(l.workloads, ", "))
	if len(l.systems) > 1 {
		fmt.Fprintf(&b, "comparisons:\n  - {baseline: %s, subjects: [%s]}\n", l.systems[0], strings.Join(l.systems[1:], ", "))
	}
	return b.String()
}
