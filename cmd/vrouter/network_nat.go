package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/spf13/cobra"

	"windtunnel/internal/cli"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/inspect"
	"windtunnel/vrouter/model"
)

func networkNATCommand() *cobra.Command {
	var pool []netip.Prefix
	var ports uint16
	var off bool
	var output format
	cmd := &cobra.Command{
		Use:   "nat NAME [--pool PREFIX… | --off]",
		Short: "Translate packets that leave a network to addresses of a pool (SNAT)",
		Long: `Sets the pool of a network, and connects the nodes to the network (--node-access of
"network create"). Each node gets one IPv4 and one IPv6 address of the pool. It translates
the source of packets from its workloads to addresses outside the subnets to this address.
A port with --floating has a separate address of the pool, in both directions.

With --ports, several nodes share an address of the first prefix of the pool, and each node
has a range of its source ports. The other prefixes are for floating addresses.

Without flags, lists the addresses in use and their nodes. Routers outside the network must
route each address to its node.`,
		Example: `  vrouter network nat red --pool 203.0.113.0/28
  vrouter port add --network red --netns web --floating 203.0.113.9
  vrouter network nat red`,
		Args:              cli.Takes(1, 1),
		ValidArgsFunction: firstArgument(completeNetworks),
		RunE: withAgent(func(ctx context.Context, cmd *cobra.Command, c *api.Client, args []string) error {
			n, err := networkNamed(ctx, c, args[0])
			if err != nil {
				return err
			}
			if ports > 0 && len(pool) == 0 {
				return errors.New("--ports needs --pool; repeat the prefixes of the pool")
			}
			if len(pool) > 0 || off {
				was := n
				if n.NATPool, n.NATPorts = pool, ports; !off {
					n.NodeAccess = true
				}
				if n, err = c.ChangeNetwork(ctx, was, n); err != nil {
					return err
				}
				return describe(cmd.OutOrStdout(), output, n, networkTable([]model.Network{n}).Fields(0))
			}
			s, err := c.State(ctx)
			if err != nil {
				return err
			}
			rows := n.FloatingAddresses(s.Ports)
			return show(cmd.OutOrStdout(), output, rows, natTable(n, rows))
		}),
	}
	listFlag(cmd, &pool, parsePrefix, "pool", "Allocate addresses of nodes, and floating addresses, from this `prefix` (repeatable)")
	cmd.Flags().BoolVar(&off, "off", false, "Remove the pool; packets then leave from the addresses of the nodes")
	cmd.Flags().Uint16Var(&ports, "ports", 0, "Share addresses between nodes, and give each node this `number` of source ports, 64 to 64512 (needs --pool; default: an address for each node)")
	cmd.MarkFlagsMutuallyExclusive("pool", "off")
	cmd.MarkFlagsMutuallyExclusive("ports", "off")
	outputFlag(cmd, &output)
	return cmd
}

func natTable(n model.Network, rows []model.Floating) inspect.Table {
	empty := fmt.Sprintf("no pool; set one with `vrouter network nat %s --pool PREFIX`", n.Name)
	if len(n.NATPool) > 0 {
		empty = fmt.Sprintf("no address of the pool %s is in use; a node gets one with its first port in the network", joined(n.NATPool))
	}
	t := inspect.Table{
		Empty:   empty,
		Columns: []inspect.Column{{Name: "Address"}, {Name: "Source ports"}, {Name: "Node"}, {Name: "Port"}},
	}
	for _, r := range rows {
		ports := "all"
		if r.LastPort > 0 {
			ports = fmt.Sprintf("%d-%d", r.FirstPort, r.LastPort)
		}
		t.Add(r.Address.String(), ports, r.Node, r.Port)
	}
	return t
}
