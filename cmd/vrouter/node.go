package main

import (
	"context"
	"fmt"
	"math"
	"net/netip"
	"strings"

	"github.com/spf13/cobra"

	"windtunnel/internal/cli"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/inspect"
)

func nodeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "node",
		Short: "List, add and delete nodes, and show whether their agents run",
		Example: `  vrouter node list
  vrouter node locators
  vrouter node delete c --ports`,
	}
	kind := objects[api.Node]{
		noun: "node", all: (*api.Client).Nodes, name: func(n api.Node) string { return n.Name }, table: nodeTable, complete: completeFleetNodes,
	}
	cmd.AddCommand(nodeAddCommand(), kind.list(), kind.get(), nodeLocatorsCommand(), nodeDeleteCommand())
	return cmd
}

func nodeTable(rows []api.Node) inspect.Table {
	t := inspect.Table{
		Empty: "no nodes; add one with `vrouter node add NAME --underlay ADDRESS`",
		Columns: []inspect.Column{
			{Name: "Node"}, {Name: "Underlay", Least: 12}, {Name: "Encapsulations", Leave: 2}, {Name: "Locator", Leave: 4}, {Name: "Ports", Right: true},
			{Name: "Agent"}, {Name: "Host", Leave: 3}, {Name: "Version", Leave: 1},
		},
	}
	for _, n := range rows {
		agent, host, version := "none", "-", "-"
		if n.Gone {
			agent = "gone"
		}
		if n.Agent != nil {
			agent, host, version = "alive", n.Agent.Host, n.Agent.Version
		}
		var encapsulations []string
		for _, e := range n.Encapsulations {
			encapsulations = append(encapsulations, string(e))
		}
		locator := "-"
		if n.Locator.IsValid() {
			locator = n.Locator.String()
		}
		t.Add(n.Name, joined(n.Underlay), strings.Join(encapsulations, " "), locator, fmt.Sprint(n.Ports), agent, host, version)
	}
	return t
}

func nodeAddCommand() *cobra.Command {
	var n api.NodeRequest
	cmd := &cobra.Command{
		Use:     "add NAME --underlay ADDRESS…",
		Aliases: []string{"set"},
		Short:   "Add a node before its agent starts, or change it",
		Example: "  vrouter node add c --underlay 192.0.2.3 --encapsulation vxlan",
		Args:    cli.Takes(1, 1),
		RunE: withAgent(func(ctx context.Context, cmd *cobra.Command, c *api.Client, args []string) error {
			n.Name = args[0]
			if err := c.PutNode(ctx, n); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "saved node %s\n", n.Name)
			return nil
		}),
	}
	listFlag(cmd, &n.Underlay, parseAddress, "underlay", "Underlay `address` of the node (repeatable)")
	encapsulationFlag(cmd, &n.Encapsulations)
	cmd.Flags().Func("locator", "IPv6 /64 or /80 `prefix` that the underlay routes to the node, or auto: one from settings.locators; direct then also works between nodes on different links", func(text string) (err error) {
		if n.FromPool = text == "auto"; n.FromPool {
			return nil
		}
		if n.Locator, err = netip.ParsePrefix(text); err != nil {
			return fmt.Errorf("%q is not an IPv6 prefix; write one such as fd00:0:0:17::/64, or auto", text)
		}
		return nil
	})
	cmd.MarkFlagRequired("underlay")
	return cmd
}

func nodeDeleteCommand() *cobra.Command {
	var ports bool
	cmd := &cobra.Command{
		Use:               "delete NAME…",
		Short:             "Delete nodes that will not come back",
		Aliases:           []string{"rm"},
		Example:           "  vrouter node delete c --ports",
		Long:              "Deletes nodes whose agents no longer run. With --ports it also deletes their ports,\nfrees the ports' addresses, and removes the ports from all routes. A route without\nanother next hop then discards packets.",
		Args:              cli.Takes(1, math.MaxInt),
		ValidArgsFunction: completeFleetNodes,
		RunE: withAgent(func(ctx context.Context, cmd *cobra.Command, c *api.Client, args []string) error {
			return deleteAll(ctx, cmd, "node", args, func(ctx context.Context, name string) error { return c.DeleteNode(ctx, name, ports) })
		}),
	}
	cmd.Flags().BoolVar(&ports, "ports", false, "Delete the node's ports too")
	return cmd
}
