package main

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"windtunnel/vrouter/api"
	"windtunnel/vrouter/inspect"
	"windtunnel/vrouter/model"
)

func networkNATCommand() *cobra.Command {
	var n model.Network
	var off bool
	var output format
	cmd := &cobra.Command{
		Use:   "nat NAME [--pool PREFIX… | --off]",
		Short: "Give workloads a way out of a network, from addresses of a pool",
		Long: `Sets the pool of a network, and connects the nodes to the network (--node-access of
"network create"). Each node takes one address of each family of the pool. Packets of its
workloads to addresses outside the subnets leave by the node with this address. A port with
--floating has an address of the pool for itself, in both directions.

Without flags, lists the addresses that are in use, with the node to which the network
outside must route them.`,
		Example: `  vrouter network nat red --pool 203.0.113.0/28
  vrouter port add --network red --netns web --floating 203.0.113.9
  vrouter network nat red`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: firstArgument(completeNetworks),
		RunE: withAgent(func(ctx context.Context, cmd *cobra.Command, c *api.Client, args []string) error {
			all, err := c.Networks(ctx)
			if err != nil {
				return err
			}
			is, err := find("network", args[0], all, func(n model.Network) string { return n.Name })
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("pool") || off {
				if is.NATPool = n.NATPool; !off {
					is.NodeAccess = true
				}
				if is, err = c.PutNetwork(ctx, is); err != nil {
					return err
				}
				return describe(cmd.OutOrStdout(), output, is, networkTable([]model.Network{is}).Fields(0))
			}
			s, err := c.State(ctx)
			if err != nil {
				return err
			}
			rows := slices.DeleteFunc(model.FloatingAddresses(s.Ports), func(f model.Floating) bool { return f.Network != is.Name })
			return show(cmd.OutOrStdout(), output, rows, natTable(rows))
		}),
	}
	listFlag(cmd, &n.NATPool, parsePrefix, "pool", "Addresses for the nodes and for floating addresses, a `prefix` (repeatable)")
	cmd.Flags().BoolVar(&off, "off", false, "Remove the pool; the nodes stay connected, with their own addresses")
	cmd.MarkFlagsMutuallyExclusive("pool", "off")
	outputFlag(cmd, &output)
	return cmd
}

func natTable(rows []model.Floating) inspect.Table {
	t := inspect.Table{
		Empty:   "no address of a pool is in use",
		Columns: []inspect.Column{{Name: "Address"}, {Name: "Node"}, {Name: "Port"}},
	}
	for _, r := range rows {
		t.Add(r.Address.String(), r.Node, r.Port)
	}
	return t
}
