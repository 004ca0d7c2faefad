package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"windtunnel/internal/cli"
	"windtunnel/internal/lists"
	"windtunnel/internal/phrase"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/inspect"
)

// lister makes the commands of one of the agent's tables: `list` shows all rows,
// `get` shows one.
type lister[T any] struct {
	name, what string // "vif", "Show vifs: …"
	noun       string
	get        string // the argument of get
	rows       func(*api.Client, context.Context, uint32) ([]T, error)
	// table may ask the agent for objects that the rows refer to.
	table  func(context.Context, *api.Client, []T) (inspect.Table, error)
	find   func(rows []T, id string, vrf uint32) (T, error)
	id     func(T) string                                                // the argument that finds the row
	fields func(context.Context, *api.Client, T) (inspect.Fields, error) // nil: the table's columns
	needs  bool                                                          // get requires --vrf
	sample [2]string                                                     // arguments for the examples of list and get
}

func (l lister[T]) command(aliases ...string) *cobra.Command {
	cmd := &cobra.Command{
		Use:     l.name,
		Short:   l.what,
		Aliases: aliases,
		Example: l.listExample() + "\n" + l.getExample(),
	}
	cmd.AddCommand(l.list(), l.getOne())
	return cmd
}

func (l lister[T]) listExample() string {
	return strings.TrimRight("  vrouter "+l.name+" list "+l.sample[0], " ")
}

func (l lister[T]) getExample() string { return "  vrouter " + l.name + " get " + l.sample[1] }

func (l lister[T]) list() *cobra.Command {
	var output format
	var vrf string
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List all " + phrase.Plural(l.noun) + ", or those of one network",
		Aliases: []string{"ls"},
		Example: l.listExample() + "\n  vrouter " + l.name + " list -o json",
		Args:    cli.Takes(0, 0),
		RunE: withAgent(func(ctx context.Context, cmd *cobra.Command, c *api.Client, _ []string) error {
			id, err := vrfOf(ctx, c, vrf)
			if err != nil {
				return err
			}
			rows, err := l.rows(c, ctx, id)
			if err != nil {
				return err
			}
			table, err := l.table(ctx, c, rows)
			if err != nil {
				return err
			}
			return show(cmd.OutOrStdout(), output, rows, table)
		}),
	}
	outputFlag(cmd, &output)
	vrfFlag(cmd, &vrf)
	return cmd
}

// names are the arguments that get accepts, for completion.
func (l lister[T]) names(ctx context.Context, c *api.Client, vrf string) ([]string, error) {
	id, err := vrfOf(ctx, c, vrf)
	if err != nil {
		return nil, err
	}
	rows, err := l.rows(c, ctx, id)
	names := lists.Map(rows, l.id)
	return names, err
}

func (l lister[T]) getOne() *cobra.Command {
	var output format
	var vrf string
	cmd := &cobra.Command{
		Use:     "get " + l.get,
		Short:   "Show one " + l.noun + " with all its fields",
		Example: l.getExample(),
		Args:    cli.Takes(1, 1),
		ValidArgsFunction: firstArgument(func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return propose(func(ctx context.Context, c *api.Client) ([]string, error) { return l.names(ctx, c, vrf) })
		}),
		RunE: withAgent(func(ctx context.Context, cmd *cobra.Command, c *api.Client, args []string) error {
			id, err := vrfOf(ctx, c, vrf)
			if err != nil {
				return err
			}
			return l.printOne(ctx, cmd.OutOrStdout(), c, id, args[0], output)
		}),
	}
	outputFlag(cmd, &output)
	vrfFlag(cmd, &vrf)
	if l.needs {
		cmd.MarkFlagRequired("vrf")
	}
	return cmd
}

func (l lister[T]) printOne(ctx context.Context, out io.Writer, c *api.Client, vrf uint32, id string, output format) error {
	rows, err := l.rows(c, ctx, vrf)
	if err != nil {
		return err
	}
	row, err := l.find(rows, id, vrf)
	if err != nil {
		return err
	}
	if output == asJSON {
		return writeJSON(out, row)
	}
	fields := l.fields
	if fields == nil {
		fields = func(ctx context.Context, c *api.Client, row T) (inspect.Fields, error) {
			table, err := l.table(ctx, c, []T{row})
			if err != nil {
				return nil, err
			}
			return table.Fields(0), nil
		}
	}
	shown, err := fields(ctx, c, row)
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, shown.String())
	return err
}

func vrfFlag(cmd *cobra.Command, vrf *string) {
	cmd.Flags().StringVar(vrf, "vrf", "", "Only this VRF: the `name` of its network, or its number")
	cmd.RegisterFlagCompletionFunc("vrf", completeNetworks)
}

// byNumber makes a function that finds a row by its number.
func byNumber[T any](what string, of func(T) uint32) func([]T, string, uint32) (T, error) {
	return func(rows []T, id string, _ uint32) (T, error) {
		var none T
		n, err := strconv.ParseUint(id, 10, 32)
		if err != nil {
			return none, cli.Misuse(fmt.Errorf("%q is not a %s; give a number", id, what))
		}
		for _, r := range rows {
			if of(r) == uint32(n) {
				return r, nil
			}
		}
		return none, fmt.Errorf("there is no %s %d on this node", what, n)
	}
}

// withNexthops makes a table that resolves nexthop ids to names.
func withNexthops[T any](table func([]T, []inspect.Nexthop) inspect.Table) func(context.Context, *api.Client, []T) (inspect.Table, error) {
	return func(ctx context.Context, c *api.Client, rows []T) (inspect.Table, error) {
		nexthops, err := c.Nexthops(ctx, 0)
		if err != nil {
			return inspect.Table{}, err
		}
		return table(rows, nexthops), nil
	}
}

// plain makes a table that needs only its rows.
func plain[T any](table func([]T) inspect.Table) func(context.Context, *api.Client, []T) (inspect.Table, error) {
	return func(_ context.Context, _ *api.Client, rows []T) (inspect.Table, error) {
		return table(rows), nil
	}
}
