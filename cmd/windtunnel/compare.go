package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"windtunnel/internal/cli"
	"windtunnel/lab/report/compare"
	"windtunnel/lab/report/compare/source"
	"windtunnel/lab/results"
)

// compareOptions are the flags of `windtunnel compare`.
type compareOptions struct {
	db, otherDB string
	metrics     []string
	scenarios   []string
	format      string
	out         string
	gate, junit string
	across      bool
}

// comparisonEndings choose a format without --format.
var comparisonEndings = []ending{{".html", "html"}, {".md", "markdown"}, {".json", "json"}, {".txt", "table"}}

func compareCommand() *cobra.Command {
	var o compareOptions
	cmd := &cobra.Command{
		Use:   "compare RUN[,RUN…] RUN[,RUN…]",
		Short: "Compare two runs; with gates, fail on a regression",
		Long: `Compare the second run (B) with the first (A), scenario by scenario. A run
is named by its ID, by a beginning of it, by its name (NAME@latest is the newest
run of this name), or as "latest". A side may have several runs of the same
software, separated by commas.

A difference must stand out from the spread between runs of the same software.
It is measured within both sides and among the stored runs of the suite on this
machine; with too few of them it is assumed, and the output says so.

Exit status: 0 compared, and every gate passed; 1 a gate failed; 2 the runs could not
be compared or the gates not judged, with the reason, or wrong usage. A gate is not judged if
noise can hide a change of its size, unless the gate has on_doubt: pass or fail.`,
		Example: `  windtunnel compare 20261120 latest
  windtunnel compare 20261120 latest --metric throughput_bps --format markdown
  windtunnel compare main@latest fix/mtu@latest
  windtunnel compare main1,main2,main3 new1,new2,new3
  windtunnel compare main latest --db main.db --other-db branch.db --gate gate.yaml --junit gates.xml`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return fmt.Errorf("compare needs two runs, %d given; `windtunnel runs` lists them", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("format") {
				var err error
				if o.format, err = formatOf(o.out, o.format, comparisonEndings); err != nil {
					return err
				}
			}
			status, err := o.run(cmd.OutOrStdout(), args[0], args[1])
			switch {
			case cli.IsMisuse(err):
				return err
			case err != nil: // it must not look like a failed gate
				fmt.Fprintln(cmd.ErrOrStderr(), "windtunnel:", err)
				return exitCode(cli.ExitUsage)
			case status != 0:
				return exitCode(status)
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.Var((*nonEmpty)(&o.otherDB), "other-db", "File or URL of the results with the second run (default: that of --db)")
	f.StringSliceVar(&o.metrics, "metric", nil, "Compare these metrics instead of the headline metrics, separated by commas")
	f.StringSliceVar(&o.scenarios, "scenario", nil, "Compare only these scenarios: IDs, groups (the part before \"/\") or patterns, separated by commas")
	formatFlag(cmd, &o.format, "the comparison (default: by the ending of --output, or table)", documentFormats...)
	f.StringVarP(&o.out, "output", "o", "", "File to write instead of standard output")
	f.StringVar(&o.gate, "gate", "", "File of gates; if a gate fails, the exit status is 1")
	f.StringVar(&o.junit, "junit", "", "File to write the results of the gates to, as a JUnit report")
	f.BoolVar(&o.across, "across-machines", false, "Judge runs of different machines too")
	dbFlag(cmd, &o.db)
	return cmd
}

// run compares and returns the exit status.
func (o *compareOptions) run(out io.Writer, first, second string) (status int, err error) {
	opts, err := o.read()
	if err != nil {
		return 0, err
	}
	a, b, err := o.load(first, second)
	if err != nil {
		return 0, err
	}
	if opts.History, err = o.history(b[0].Run.Suite); err != nil {
		return 0, err
	}
	c, err := compare.Runs(a, b, opts)
	if c == nil {
		return 0, err
	}
	// Print the comparison also if the gates were not judged: its differences may be
	// the reason.
	if writeErr := o.write(out, c); writeErr != nil || err != nil {
		return 0, errors.Join(writeErr, err)
	}
	if c.Judgement == nil {
		return 0, nil
	}
	if o.junit != "" {
		if err := writeOutput(o.junit, "the JUnit report", func(w io.Writer) error { return compare.WriteJUnit(w, c) }); err != nil {
			return 0, err
		}
	}
	return c.Judgement.Status(), nil
}

// write writes the comparison to --output, or to out.
func (o *compareOptions) write(out io.Writer, c *compare.Comparison) error {
	if o.out == "" || o.out == "-" {
		return writeDocument(out, o.format, c)
	}
	return writeOutput(o.out, "the "+o.format+" comparison", func(w io.Writer) error { return writeDocument(w, o.format, c) })
}

// read checks the flags before any store is opened.
func (o *compareOptions) read() (opts compare.Options, err error) {
	opts = compare.Options{Scenarios: o.scenarios, AcrossMachines: o.across}
	for _, name := range o.metrics {
		m, err := compare.Metric(strings.TrimSpace(name))
		if err != nil {
			return opts, cli.Misuse(err)
		}
		opts.Metrics = append(opts.Metrics, m)
	}
	switch {
	case o.gate != "":
		opts.Gates, err = readGates(o.gate)
	case o.junit != "":
		err = cli.Misuse(errors.New("--junit writes the results of gates: give their file with --gate"))
	}
	return opts, err
}

func readGates(path string) (*compare.Gates, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the gates: %w; name a file of gates (docs/comparing.md)", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, compare.MaxGateBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read the gates of %s: %w", path, err)
	}
	return compare.ParseGates(path, data)
}

// load reads both sides, each from its own store.
func (o *compareOptions) load(first, second string) (a, b []compare.Side, err error) {
	if a, err = loadRuns(o.db, first); err != nil {
		return nil, nil, err
	}
	b, err = loadRuns(cmp.Or(o.otherDB, o.db), second)
	return a, b, err
}

func loadRuns(db, names string) ([]compare.Side, error) {
	return readStore(db, func(s *results.Store) ([]compare.Side, error) { return source.Runs(s, names) })
}

// history reads the newest complete runs of the suite from both stores.
func (o *compareOptions) history(suite string) ([]compare.Side, error) {
	var sides []compare.Side
	for _, db := range slices.Compact([]string{o.db, cmp.Or(o.otherDB, o.db)}) {
		more, err := readStore(db, func(s *results.Store) ([]compare.Side, error) { return source.History(s, suite) })
		if err != nil {
			return nil, err
		}
		sides = append(sides, more...)
	}
	return sides, nil
}
