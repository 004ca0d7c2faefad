package main

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	"github.com/spf13/cobra"

	"windtunnel/vrouter/api"
	"windtunnel/vrouter/inspect"
	"windtunnel/vrouter/model"
)

func staticCommand() *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "route",
		Short: "Static routes of networks; what a node forwards by is in `rt`",
		Example: `  vrouter route add red 10.9.0.0/16 --port fw1 --port fw2
  vrouter route list`,
	})
	cmd.AddCommand(staticAddCommand(), staticListCommand(), staticDeleteCommand())
	return cmd
}

func staticAddCommand() *cobra.Command {
	var ports, gateways []string
	var discard bool
	cmd := &cobra.Command{
		Use:     "add NETWORK PREFIX --port PORT… | --gateway GATEWAY… | --discard",
		Aliases: []string{"set"},
		Short:   "Make a route, or give it other ways; several share the flows",
		Example: "  vrouter route add red 0.0.0.0/0 --gateway edge",
		Args:    cobra.ExactArgs(2),
		RunE: withAgent(func(ctx context.Context, cmd *cobra.Command, c *api.Client, args []string) error {
			prefix, err := prefixArgument(args[1])
			if err != nil {
				return err
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
			fmt.Fprintf(cmd.OutOrStdout(), "%s in network %s leads to %s\n", r.Prefix, r.Network, ways(r))
			return nil
		}),
	}
	cmd.Flags().StringSliceVar(&ports, "port", nil, "through this `port`; may be repeated")
	cmd.Flags().StringSliceVar(&gateways, "gateway", nil, "through this `gateway`; may be repeated")
	cmd.Flags().BoolVar(&discard, "discard", false, "nowhere")
	cmd.RegisterFlagCompletionFunc("port", completePorts)
	cmd.RegisterFlagCompletionFunc("gateway", completeGateways)
	return cmd
}

func prefixArgument(text string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return p, misuse{fmt.Errorf("%q is no prefix; write such as 10.9.0.0/16", text)}
	}
	return p, nil
}

func ways(r model.Route) string {
	if r.Discard {
		return "nowhere"
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

func staticListCommand() *cobra.Command {
	var v view
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "Static routes, of the whole fleet",
		Aliases: []string{"ls"},
		Example: "  vrouter route list",
		Args:    cobra.NoArgs,
		RunE: withAgent(func(ctx context.Context, cmd *cobra.Command, c *api.Client, _ []string) error {
			return v.show(ctx, cmd.OutOrStdout(), func(ctx context.Context) (reading, error) {
				rows, err := c.StaticRoutes(ctx)
				t := inspect.Table{
					Empty:   "no static routes; make one with `vrouter route add`",
					Columns: []inspect.Column{{Name: "Network", Key: true}, {Name: "Prefix", Key: true}, {Name: "Leads to", Least: 12}},
				}
				for _, r := range rows {
					t.Add(r.Network, r.Prefix.String(), ways(r))
				}
				return reading{rows, t}, err
			})
		}),
	}
	v.flags(cmd)
	return cmd
}

func staticDeleteCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "delete NETWORK PREFIX",
		Short:   "Take a static route away",
		Aliases: []string{"rm"},
		Example: "  vrouter route delete red 10.9.0.0/16",
		Args:    cobra.ExactArgs(2),
		RunE: withAgent(func(ctx context.Context, cmd *cobra.Command, c *api.Client, args []string) error {
			prefix, err := prefixArgument(args[1])
			if err != nil {
				return err
			}
			if err := c.DeleteRoute(ctx, args[0], prefix); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "route %s in network %s is gone\n", prefix, args[0])
			return nil
		}),
	}
}
