package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"windtunnel/internal/cli"
	"windtunnel/internal/phrase"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/inspect"
)

func dropstatsCommand() *cobra.Command {
	var output format
	var log, follow bool
	cmd := &cobra.Command{
		Use:   "dropstats",
		Short: "Count dropped packets by reason and vif; --log lists the latest",
		Example: `  watch -d vrouter dropstats
  vrouter dropstats --log
  vrouter dropstats --follow`,
		Args: cli.Takes(0, 0),
		RunE: withAgent(func(ctx context.Context, cmd *cobra.Command, c *api.Client, _ []string) error {
			switch {
			case follow:
				return followDrops(ctx, cmd.OutOrStdout(), cmd.ErrOrStderr(), c, output)
			case log:
				return printDropLog(ctx, cmd.OutOrStdout(), c, output)
			}
			rows, err := c.Drops(ctx)
			if err != nil {
				return err
			}
			return show(cmd.OutOrStdout(), output, rows, inspect.DropTable(rows))
		}),
	}
	outputFlag(cmd, &output)
	cmd.Flags().BoolVar(&log, "log", false, "List the latest dropped packets")
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "List the latest dropped packets, then each new one")
	return cmd
}

// printDropLog prints the dropped packets in the agent's log.
func printDropLog(ctx context.Context, out io.Writer, c *api.Client, output format) error {
	events, err := c.DropLog(ctx)
	if err != nil {
		return err
	}
	if output == asJSON {
		return writeJSON(out, events)
	}
	if len(events) == 0 {
		_, err := fmt.Fprintln(out, "no packets have been dropped since the agent started")
		return err
	}
	return printDrops(out, events, output)
}

// followDrops prints each event of the agent's log once, until ctx ends. The log has the latest 1,000
// events, and the kernel's buffer is limited too. So it compares the printed events with the counters,
// and writes to problems how many are missing.
func followDrops(ctx context.Context, out, problems io.Writer, c *api.Client, output format) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var missed inspect.Missed
	for events := []inspect.DropEvent(nil); ; {
		later, err := c.DropLog(ctx)
		if err != nil {
			return err
		}
		printed := inspect.Later(events, later)
		if err := printDrops(out, printed, output); err != nil {
			return err
		}
		if len(later) > 0 {
			events = later
		}
		counters, err := c.Drops(ctx)
		if err != nil {
			return err
		}
		if n := missed.Add(len(printed), counters); n > 0 {
			fmt.Fprintf(problems, "not listed: %s; the agent keeps the latest 1,000 drops, and `vrouter dropstats` counts all\n", phrase.Count(n, "packet"))
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// printDrops prints one line per event.
func printDrops(out io.Writer, events []inspect.DropEvent, output format) error {
	for _, e := range events {
		var err error
		if output == asJSON {
			err = json.NewEncoder(out).Encode(e)
		} else {
			_, err = fmt.Fprintln(out, e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func vrfstatsCommand() *cobra.Command {
	return listing(&cobra.Command{
		Use:   "vrfstats",
		Short: "Show packets and bytes by network and encapsulation",
		Long: `Shows the counts since the tables were created. Workloads of this node send TX and
receive RX; "local" is traffic between two of them. Packets are packets on the wire.
Bytes are the bytes of inner frames, without the outer headers.`,
		Example: "  vrouter vrfstats\n  vrouter vrfstats -o json",
	}, (*api.Client).VRFStats, inspect.VRFStatsTable)
}

func fallbackstatsCommand() *cobra.Command {
	return listing(&cobra.Command{
		Use:   "fallbackstats",
		Short: "Count packets that direct cannot carry, by network and reason",
		Long: `Counts the packets to nodes that are reached by direct that direct cannot carry. They take
the next encapsulation that both nodes offer; if there is none, they are dropped
(untranslatable). The counts are since the tables were created. Packets are packets on the
wire; vrfstats counts them by the encapsulation that they took.`,
		Example: "  vrouter fallbackstats\n  watch -d vrouter fallbackstats",
	}, (*api.Client).Fallbacks, inspect.FallbackTable)
}
