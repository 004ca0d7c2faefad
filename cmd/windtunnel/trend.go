package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"windtunnel/internal/cli"
	"windtunnel/lab/report/compare"
	"windtunnel/lab/report/compare/source"
	"windtunnel/lab/sample"
)

// trendOptions are the flags of `windtunnel trend`.
type trendOptions struct {
	db, metric, format, like string
	scenarios                []string
	last                     int
	across                   bool
}

func trendCommand() *cobra.Command {
	var o trendOptions
	cmd := &cobra.Command{
		Use:   "trend SUITE",
		Short: "Show one metric over the runs of a suite, and mark where its level changed",
		Example: `  windtunnel trend quick
  windtunnel trend quick --metric receiver_cpu_ns_per_byte --scenario 'bridge/*' --last 20
  windtunnel trend quick --like 20261121-093015`,
		Args: cli.Takes(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := o.trend(args[0])
			if err != nil {
				return err
			}
			return writeDocument(cmd.OutOrStdout(), o.format, t)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.metric, "metric", "", "Metric to show (default: throughput_bps for streams, transactions_per_s for request/response)")
	f.StringSliceVar(&o.scenarios, "scenario", nil, "Show only these scenarios: IDs, groups (the part before \"/\") or patterns, separated by commas")
	f.IntVar(&o.last, "last", 50, "Show at most this many of the newest runs (0: all)")
	formatFlag(cmd, &o.format, "the trend", documentFormats...)
	f.StringVar(&o.like, "like", "", "Show runs with the testbed and flags of this run (default: runs of the whole suite without --testbed)")
	f.BoolVar(&o.across, "across-machines", false, "Show runs of other machines too")
	dbFlag(cmd, &o.db)
	return cmd
}

func (o *trendOptions) trend(suite string) (*compare.Trend, error) {
	opts := compare.TrendOptions{Scenarios: o.scenarios, Last: o.last, AcrossMachines: o.across}
	if o.last < 0 {
		return nil, cli.Misuse(fmt.Errorf("--last %d: give the number of runs to show, or 0 for all", o.last))
	}
	if o.metric != "" {
		m, err := compare.Metric(o.metric)
		if err != nil {
			return nil, cli.Misuse(err)
		}
		opts.Metric = m
	}
	runs, form, err := o.load(suite)
	if err != nil {
		return nil, err
	}
	opts.Form = form
	return compare.NewTrend(suite, runs, opts)
}

// load reads the suite's runs.
func (o *trendOptions) load(suite string) ([]compare.Side, sample.Form, error) {
	store, err := openStore(o.db, true)
	if err != nil {
		return nil, sample.Form{}, err
	}
	defer store.Close()
	return source.Suite(store, suite, o.like, 0)
}
