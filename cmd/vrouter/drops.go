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

func dropstatsCommand() *cobra.Command {
	var v view
	var log bool
	cmd := &cobra.Command{
		Use:   "dropstats",
		Short: "Count dropped packets by reason and vif; --log lists the latest",
		Example: `  vrouter dropstats
  vrouter dropstats --watch
  vrouter dropstats --log --watch`,
		Args: cobra.NoArgs,
		RunE: withAgent(func(ctx context.Context, cmd *cobra.Command, c *api.Client, _ []string) error {
			if log {
				return v.log(ctx, cmd.OutOrStdout(), c)
			}
			return v.show(ctx, cmd.OutOrStdout(), func(ctx context.Context) (reading, error) {
				rows, err := c.Drops(ctx)
				return reading{rows, inspect.DropTable(rows)}, err
			})
		}),
	}
	v.flags(cmd)
	cmd.Flags().BoolVar(&log, "log", false, "list the latest dropped packets; with --watch, follow them")
	return cmd
}

// log prints the dropped packets in the agent's log. With --watch it follows the
// log.
func (v *view) log(ctx context.Context, out io.Writer, c *api.Client) error {
	events, err := c.DropLog(ctx)
	if err != nil {
		return err
	}
	if !v.watch {
		return v.wholeLog(out, events)
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for fresh := events; ; {
		if err := v.logLines(out, fresh); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
		later, err := c.DropLog(ctx)
		if err != nil {
			return err
		}
		fresh = inspect.Later(events, later)
		if len(later) > 0 {
			events = later
		}
	}
}

func (v *view) wholeLog(out io.Writer, events []inspect.DropEvent) error {
	if v.output == asJSON {
		return writeJSON(out, events)
	}
	if len(events) == 0 {
		_, err := fmt.Fprintln(out, "no packets have been dropped since the agent started")
		return err
	}
	return v.logLines(out, events)
}

// logLines prints one line per event.
func (v *view) logLines(out io.Writer, events []inspect.DropEvent) error {
	for _, e := range events {
		var err error
		if v.output == asJSON {
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
