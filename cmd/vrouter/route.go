package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"windtunnel/internal/cli"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/inspect"
	"windtunnel/vrouter/model"
)

func staticCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "route",
		Short: "Add, list and delete static routes (`vrouter rt` shows the forwarding table)",
		Example: `  vrouter route add red 10.9.0.0/16 --port fw1 --port fw2
  vrouter route list`,
	}
	kind := objects[model.Route]{noun: "route", all: (*api.Client).StaticRoutes, table: staticTable}
	cmd.AddCommand(staticAddCommand(), kind.list(), staticDeleteCommand())
	return cmd
}

func staticAddCommand() *cobra.Command {
	var ports, gateways []string
	var discard bool
	cmd := &cobra.Command{
		Use:     "add NETWORK PREFIX --port PORT… | --gateway GATEWAY… | --discard",
		Aliases: []string{"set"},
		Short:   "Add or replace a route; several next hops share the flows",
		Example: "  vrouter route add red 0.0.0.0/0 --gateway edge",
		Args:    cli.Takes(2, 2),
		RunE: withAgent(func(ctx context.Context, cmd *cobra.Command, c *api.Client, args []string) error {
			prefix, err := parsePrefix(args[1])
			if err != nil {
				return cli.Misuse(err)
			}
			r := model.Route{Network: args[0], Prefix: prefix, Discard: discard}
			for _, p := range ports {
				r.Via = append(r.Via, model.Via{Port: p})
			}
			for _, g := range gateways {
				r.Via = append(r.Via, model.Via{Gateway: g})
			}
			if err := c.PutRoute(ctx, r); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "saved route %s in network %s: %s\n", r.Prefix, r.Network, nextHops(r))
			return nil
		}),
	}
	cmd.Flags().StringSliceVar(&ports, "port", nil, "Send packets to this `port` (repeatable)")
	cmd.Flags().StringSliceVar(&gateways, "gateway", nil, "Send packets to this `gateway` (repeatable)")
	cmd.Flags().BoolVar(&discard, "discard", false, "Drop packets to this prefix")
	cmd.RegisterFlagCompletionFunc("port", completePorts)
	cmd.RegisterFlagCompletionFunc("gateway", completeGateways)
	return cmd
}

func nextHops(r model.Route) string {
	if r.Discard {
		return "discard"
	}
	var words []string
	for _, v := range r.Via {
		if v.Port != "" {
			words = append(words, "port "+v.Port)
		} else {
			words = append(words, "gateway "+v.Gateway)
		}
	}
	return strings.Join(words, ", ")
}

func staticTable(rows []model.Route) inspect.Table {
	t := inspect.Table{
		Empty:   "no static routes; add one with `vrouter route add`",
		Columns: []inspect.Column{{Name: "Network"}, {Name: "Prefix"}, {Name: "Next hops", Least: 12}},
	}
	for _, r := range rows {
		t.Add(r.Network, r.Prefix.String(), nextHops(r))
	}
	return t
}

func staticDeleteCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "delete NETWORK PREFIX",
		Short:   "Delete a static route",
		Aliases: []string{"rm"},
		Example: "  vrouter route delete red 10.9.0.0/16",
		Args:    cli.Takes(2, 2),
		RunE: withAgent(func(ctx context.Context, cmd *cobra.Command, c *api.Client, args []string) error {
			prefix, err := parsePrefix(args[1])
			if err != nil {
				return cli.Misuse(err)
			}
			if err := c.DeleteRoute(ctx, args[0], prefix); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "deleted route %s in network %s\n", prefix, args[0])
			return nil
		}),
	}
}
