package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"windtunnel/vrouter/inspect"
)

// view shows a list once, or with --watch every second.
type view struct {
	watch  bool
	output format
}

func (v *view) flags(cmd *cobra.Command) {
	outputFlag(cmd, &v.output)
	cmd.Flags().BoolVarP(&v.watch, "watch", "w", false, "print every second; mark new (+), changed (~) and deleted (-) rows")
}

// reading is the agent's rows, and the table that shows them.
type reading struct {
	rows  any
	table inspect.Table
}

// show prints the rows that read fetches.
func (v *view) show(ctx context.Context, out io.Writer, read func(context.Context) (reading, error)) error {
	now, err := read(ctx)
	if err != nil {
		return err
	}
	if !v.watch {
		return v.once(out, now)
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	before := now
	for {
		if err := v.again(out, before, now); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
		before = now
		if now, err = read(ctx); err != nil {
			return err
		}
	}
}

func (v *view) once(out io.Writer, r reading) error {
	if v.output == asJSON {
		return writeJSON(out, r.rows)
	}
	_, err := io.WriteString(out, r.table.Render(optionsFor(out)))
	return err
}

// again prints the next reading. On a terminal it replaces the previous one, else
// it follows below. JSON has one line per reading.
func (v *view) again(out io.Writer, before, now reading) error {
	if v.output == asJSON {
		return json.NewEncoder(out).Encode(now.rows)
	}
	var b bytes.Buffer
	if canRedraw(out) {
		b.WriteString("\x1b[H\x1b[2J") // home, clear: ECMA-48
	}
	fmt.Fprintf(&b, "%s\n", time.Now().Format("15:04:05"))
	b.WriteString(inspect.Compare(before.table, now.table).Render(optionsFor(out)))
	_, err := out.Write(b.Bytes())
	return err
}
