package main

import (
	"context"
	"net/netip"
	"slices"

	"github.com/spf13/cobra"

	"windtunnel/vrouter/api"
	"windtunnel/vrouter/inspect"
	"windtunnel/vrouter/model"
)

func networkNATCommand() *cobra.Command {
	var pool []netip.Prefix
	var off bool
	var output format
	cmd := &cobra.Command{
		Use:   "nat NAME [--pool PREFIX… | --off]",
		Short: "Translate packets that leave a network to addresses of a pool (SNAT)",
		Long: `Sets the pool of a network, and connects the nodes to the network (--node-access of
"network create"). Each node gets one IPv4 and one IPv6 address of the pool. It translates
the source of packets from its workloads to addresses outside the subnets to this address.
A port with --floating has a separate address of the pool, in both directions.

Without flags, lists the addresses in use and their nodes. Routers outside the network must
route each address to its node.`,
		Example: `  vrouter network nat red --pool 203.0.113.0/28
  vrouter port add --network red --netns web --floating 203.0.113.9
  vrouter network nat red`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: firstArgument(completeNetworks),
		RunE: withAgent(func(ctx context.Context, cmd *cobra.Command, c *api.Client, args []string) error {
			n, err := networkNamed(ctx, c, args[0])
			if err != nil {
				return err
			}
			if len(pool) > 0 || off {
				if n.NATPool = pool; !off {
					n.NodeAccess = true
				}
				if n, err = c.PutNetwork(ctx, n); err != nil {
					return err
				}
				return describe(cmd.OutOrStdout(), output, n, networkTable([]model.Network{n}).Fields(0))
			}
			s, err := c.State(ctx)
			if err != nil {
				return err
			}
			rows := slices.DeleteFunc(model.FloatingAddresses(s.Ports), func(f model.Floating) bool { return f.Network != n.Name })
			return show(cmd.OutOrStdout(), output, rows, natTable(rows))
		}),
	}
	listFlag(cmd, &pool, parsePrefix, "pool", "Allocate addresses of nodes, and floating addresses, from this `prefix` (repeatable)")
	cmd.Flags().BoolVar(&off, "off", false, "Remove the pool; packets then leave from the addresses of the nodes")
	cmd.MarkFlagsMutuallyExclusive("pool", "off")
	outputFlag(cmd, &output)
	return cmd
}

func natTable(rows []model.Floating) inspect.Table {
	t := inspect.Table{
		Empty:   "no address of the pool is in use; set a pool with `vrouter network nat NAME --pool PREFIX`",
		Columns: []inspect.Column{{Name: "Address"}, {Name: "Node"}, {Name: "Port"}},
	}
	for _, r := range rows {
		t.Add(r.Address.String(), r.Node, r.Port)
	}
	return t
}
