package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"windtunnel/vrouter/api"
	"windtunnel/vrouter/inspect"
)

func vrfstatsCommand() *cobra.Command {
	var v view
	cmd := &cobra.Command{
		Use:   "vrfstats",
		Short: "Show packets and bytes by network and encapsulation",
		Long: `Shows the counts since the tables were created. Workloads of this node send TX and
receive RX; "local" is traffic between two of them. Packets are packets on the wire.
Bytes are the bytes of inner frames, without the outer headers.`,
		Example: "  vrouter vrfstats\n  vrouter vrfstats -o json",
		Args:    cobra.NoArgs,
		RunE: withAgent(func(ctx context.Context, cmd *cobra.Command, c *api.Client, _ []string) error {
			return v.show(ctx, cmd.OutOrStdout(), func(ctx context.Context) (reading, error) {
				rows, err := c.VRFStats(ctx)
				return reading{rows, inspect.VRFStatsTable(rows)}, err
			})
		}),
	}
	v.flags(cmd)
	return cmd
}

func fallbackstatsCommand() *cobra.Command {
	var v view
	cmd := &cobra.Command{
		Use:   "fallbackstats",
		Short: "Count packets that direct cannot carry, by network and reason",
		Long: `Counts the packets to nodes that are reached by direct that direct cannot carry. They take
the next encapsulation that both nodes offer; if there is none, they are dropped
(untranslatable). The counts are since the tables were created. Packets are packets on the
wire; vrfstats counts them by the encapsulation that they took.`,
		Example: "  vrouter fallbackstats\n  vrouter fallbackstats --watch",
		Args:    cobra.NoArgs,
		RunE: withAgent(func(ctx context.Context, cmd *cobra.Command, c *api.Client, _ []string) error {
			return v.show(ctx, cmd.OutOrStdout(), func(ctx context.Context) (reading, error) {
				rows, err := c.Fallbacks(ctx)
				return reading{rows, inspect.FallbackTable(rows)}, err
			})
		}),
	}
	v.flags(cmd)
	return cmd
}

func topCommand() *cobra.Command {
	var once bool
	var output format
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Show packets and bits per second by network and encapsulation, live",
		Long: `On a terminal the table is updated every second, busiest rows first; q quits.
Elsewhere one line is printed every second.`,
		Example: "  vrouter top\n  vrouter top --once -o json",
		Args:    cobra.NoArgs,
		RunE: withAgent(func(ctx context.Context, cmd *cobra.Command, c *api.Client, _ []string) error {
			out := cmd.OutOrStdout()
			if !once && output == asTable && canRedraw(out) {
				return topOnTerminal(ctx, c)
			}
			return top(ctx, out, c, once, output)
		}),
	}
	cmd.Flags().BoolVar(&once, "once", false, "measure for one second, print, and exit")
	outputFlag(cmd, &output)
	return cmd
}

// sample is a reading of the counters and its time.
type sample struct {
	rows []inspect.VRFStats
	at   time.Time
}

func takeSample(ctx context.Context, c *api.Client) (sample, error) {
	rows, err := c.VRFStats(ctx)
	return sample{rows, time.Now()}, err
}

func (s sample) since(before sample) []inspect.Rate {
	return inspect.Rates(before.rows, s.rows, s.at.Sub(before.at))
}

// top prints rates every second, or once.
func top(ctx context.Context, out io.Writer, c *api.Client, once bool, output format) error {
	before, err := takeSample(ctx, c)
	if err != nil {
		return err
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
		now, err := takeSample(ctx, c)
		if err != nil {
			return err
		}
		if err := printRates(out, now.since(before), now.at, once, output); err != nil || once {
			return err
		}
		before = now
	}
}

func printRates(out io.Writer, rates []inspect.Rate, at time.Time, once bool, output format) error {
	var err error
	switch {
	case output == asJSON && once:
		return writeJSON(out, rates)
	case output == asJSON:
		return json.NewEncoder(out).Encode(rates)
	case once:
		_, err = io.WriteString(out, inspect.RateTable(rates).Render(optionsFor(out)))
	default:
		err = rateLines(out, rates, at)
	}
	return err
}

// rateLines prints one line: the rates that are not zero, busiest first.
func rateLines(out io.Writer, rates []inspect.Rate, at time.Time) error {
	table := inspect.RateTable(rates)
	line := at.Format("15:04:05")
	for i, r := range rates {
		if r.TxPackets+r.RxPackets == 0 {
			continue
		}
		cells := table.Rows[i]
		line += fmt.Sprintf("  %s %s: tx %s p/s %s bit/s, rx %s p/s %s bit/s", cells[0], cells[2], cells[3], cells[4], cells[5], cells[6])
	}
	if line == at.Format("15:04:05") {
		line += "  idle"
	}
	_, err := fmt.Fprintln(out, line)
	return err
}
