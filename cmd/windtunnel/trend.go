package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"windtunnel/lab/compare"
	"windtunnel/lab/results"
	"windtunnel/lab/sample"
)

// trendOptions are the flags of `windtunnel trend`.
type trendOptions struct {
	db, metric, format string
	scenarios          []string
	last               int
	across             bool
}

func trendCommand() *cobra.Command {
	var o trendOptions
	cmd := &cobra.Command{
		Use:   "trend SUITE",
		Short: "Show one metric over the runs of a suite, and mark where its level changed",
		Example: `  windtunnel trend quick
  windtunnel trend quick --metric receiver_cpu_ns_per_byte --scenario 'bridge/*' --last 20`,
		Args: takes(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := o.trend(args[0])
			if err != nil {
				return err
			}
			if o.format == "json" {
				return compare.WriteTrendJSON(cmd.OutOrStdout(), t)
			}
			return compare.WriteTrend(cmd.OutOrStdout(), t)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.metric, "metric", "", "Metric to show (default: throughput_bps for streams, transactions_per_s for request/response)")
	f.StringSliceVar(&o.scenarios, "scenario", nil, "Show only these scenarios: IDs, groups (the part before \"/\") or patterns, separated by commas")
	f.IntVar(&o.last, "last", 50, "Show at most this many of the newest runs (0: all)")
	f.StringVar(&o.format, "format", "table", "Format of the trend: table, json")
	f.BoolVar(&o.across, "across-machines", false, "Show runs of other machines too")
	dbFlag(cmd, &o.db)
	return cmd
}

func (o *trendOptions) trend(suite string) (*compare.Trend, error) {
	opts := compare.TrendOptions{Scenarios: o.scenarios, Last: o.last, AcrossMachines: o.across}
	if o.format != "table" && o.format != "json" {
		return nil, fmt.Errorf("--format %s: choose one of table, json", o.format)
	}
	if o.last < 0 {
		return nil, fmt.Errorf("--last %d: give the number of runs to show, or 0 for all", o.last)
	}
	if o.metric != "" {
		m, err := compare.Metric(o.metric)
		if err != nil {
			return nil, err
		}
		opts.Metric = m
	}
	runs, err := o.load(suite)
	if err != nil {
		return nil, err
	}
	return compare.NewTrend(suite, runs, opts)
}

// load reads the suite's runs. Of incomplete runs it keeps no samples, because a trend
// only counts them.
func (o *trendOptions) load(suite string) ([]compare.Side, error) {
	store, err := openStore(o.db, true)
	if err != nil {
		return nil, err
	}
	defer store.Close()
	list, err := store.Runs()
	if err != nil {
		return nil, err
	}
	var runs []compare.Side
	for _, r := range list {
		if r.Suite != suite {
			continue
		}
		if r.Status != sample.Complete {
			runs = append(runs, compare.Side{Run: sample.Run{ID: r.ID, Suite: r.Suite, Started: r.Started, Status: r.Status}})
			continue
		}
		data, err := store.Load(r.ID)
		if err != nil {
			return nil, err
		}
		runs = append(runs, side(data))
	}
	if len(runs) == 0 {
		return nil, noRuns(store, list, suite)
	}
	return runs, nil
}

// noRuns is the error for a suite without runs. It lists the suites that have some.
func noRuns(store *results.Store, list []results.RunSummary, suite string) error {
	if len(list) == 0 {
		return fmt.Errorf("trend of suite %q: %s has no run yet; `windtunnel run quick` makes the first", suite, store.Path())
	}
	var names []string
	for _, r := range list {
		if !slices.Contains(names, r.Suite) {
			names = append(names, r.Suite)
		}
	}
	return fmt.Errorf("trend of suite %q: %s has no run of this suite; it has runs of: %s", suite, store.Path(), strings.Join(names, ", "))
}
