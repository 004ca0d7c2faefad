package main

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"strings"

	"github.com/spf13/cobra"

	"windtunnel/vrouter/api"
	"windtunnel/vrouter/inspect"
	"windtunnel/vrouter/model"
)

func networkCommand() *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "network",
		Short: "Create, change and list virtual networks",
		Example: `  vrouter network create red --subnet 10.1.0.0/16 --subnet fd00:1::/64
  vrouter network list`,
	})
	kind := objects[model.Network]{
		noun: "network", all: (*api.Client).Networks, name: func(n model.Network) string { return n.Name },
		table: networkTable, complete: completeNetworks,
		remove: func(ctx context.Context, c *api.Client, name string) error { return c.DeleteNetwork(ctx, name) },
	}
	cmd.AddCommand(networkCreateCommand(), networkSetCommand(), kind.list(), kind.get(), kind.delete("Delete networks that have no ports"))
	return cmd
}

// networkFlags are the flags of `network create` and `network set`, not yet
// parsed.
type networkFlags struct {
	tenant          string
	subnets, ranges []string
	policies        []string
	bridge, route   bool
	id, vni         uint32
}

func (f *networkFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringSliceVar(&f.subnets, "subnet", nil, "Subnet as a `prefix`; its first address is the gateway (repeatable)")
	flags.StringSliceVar(&f.ranges, "range", nil, "Allocate addresses only from `FIRST-LAST` or a prefix (repeatable; default: the subnets)")
	flags.StringVar(&f.tenant, "tenant", "", "Name of the tenant; different tenants can use the same subnets")
	flags.StringSliceVar(&f.policies, "policy", nil, "Name of a policy for all ports of the network (repeatable)")
	flags.BoolVar(&f.bridge, "l2", false, "Bridge Ethernet frames; with --l3, also route IP")
	flags.BoolVar(&f.route, "l3", false, "Route IP (the default)")
	cmd.RegisterFlagCompletionFunc("policy", completePolicies)
}

// fill copies the flags that were given into a network.
func (f *networkFlags) fill(cmd *cobra.Command, n *model.Network) error {
	given := cmd.Flags().Changed
	if given("subnet") {
		n.Subnets = nil
		for _, text := range f.subnets {
			p, err := netip.ParsePrefix(text)
			if err != nil {
				return misuse{fmt.Errorf("--subnet %q is not a prefix; write one such as 10.1.0.0/16", text)}
			}
			n.Subnets = append(n.Subnets, p)
		}
	}
	if given("range") {
		n.Ranges = nil
		for _, text := range f.ranges {
			r, err := model.ParseRange(text)
			if err != nil {
				return misuse{fmt.Errorf("--range: %w", err)}
			}
			n.Ranges = append(n.Ranges, r)
		}
	}
	if given("tenant") {
		n.Tenant = f.tenant
	}
	if given("policy") {
		n.Policies = f.policies
	}
	if given("l2") || given("l3") {
		n.Forwarding = map[[2]bool]model.Forwarding{{true, false}: model.L2, {true, true}: model.L2L3}[[2]bool{f.bridge, f.route}]
		if n.Forwarding == "" {
			n.Forwarding = model.L3
		}
	}
	return nil
}

func networkCreateCommand() *cobra.Command {
	var f networkFlags
	var output format
	cmd := &cobra.Command{
		Use:   "create NAME --subnet PREFIX…",
		Short: "Create a network for all nodes of the fleet",
		Long: `Creates a virtual network. Without --id and --vni it gets the next free ones. The
VRF and the labels of the network follow from its id.`,
		Example: `  vrouter network create red --subnet 10.1.0.0/16 --subnet fd00:1::/64 --policy web
  vrouter network create lab --l2`,
		Args: cobra.ExactArgs(1),
		RunE: withAgent(func(ctx context.Context, cmd *cobra.Command, c *api.Client, args []string) error {
			n := model.Network{Name: args[0], ID: f.id, VNI: f.vni}
			if err := f.fill(cmd, &n); err != nil {
				return err
			}
			made, err := c.AddNetwork(ctx, n)
			switch {
			case err != nil:
				return err
			case output == asJSON:
				return writeJSON(cmd.OutOrStdout(), made)
			}
			return describeNetwork(cmd.OutOrStdout(), made)
		}),
	}
	f.add(cmd)
	cmd.Flags().Uint32Var(&f.id, "id", 0, "Number of the network, 1 to 4095 (default: next free)")
	cmd.Flags().Uint32Var(&f.vni, "vni", 0, "VXLAN network identifier, a `number` (default: next free)")
	outputFlag(cmd, &output)
	return cmd
}

func networkSetCommand() *cobra.Command {
	var f networkFlags
	cmd := &cobra.Command{
		Use:               "set NAME",
		Short:             "Change a network; flags that are not given keep their values",
		Example:           "  vrouter network set red --policy web --policy ssh",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: firstArgument(completeNetworks),
		RunE: withAgent(func(ctx context.Context, cmd *cobra.Command, c *api.Client, args []string) error {
			all, err := c.Networks(ctx)
			if err != nil {
				return err
			}
			n, err := find("network", args[0], all, func(n model.Network) string { return n.Name })
			if err != nil {
				return err
			}
			if err := f.fill(cmd, &n); err != nil {
				return err
			}
			made, err := c.PutNetwork(ctx, n)
			if err != nil {
				return err
			}
			return describeNetwork(cmd.OutOrStdout(), made)
		}),
	}
	f.add(cmd)
	return cmd
}

func describeNetwork(out io.Writer, n model.Network) error {
	_, err := io.WriteString(out, inspect.Describe(networkTable([]model.Network{n}).Fields(0)))
	return err
}

func networkTable(rows []model.Network) inspect.Table {
	t := inspect.Table{
		Empty: "no networks; create one with `vrouter network create`",
		Columns: []inspect.Column{
			{Name: "Network"}, {Name: "Id", Right: true}, {Name: "VNI", Right: true, Leave: 3}, {Name: "Forwarding", Leave: 2},
			{Name: "Tenant", Leave: 5}, {Name: "Subnets", Least: 12}, {Name: "Ranges", Leave: 4}, {Name: "Policies", Leave: 1},
		},
	}
	for _, n := range rows {
		t.Add(n.Name, fmt.Sprint(n.ID), fmt.Sprint(n.VNI), string(n.Forwarding), dash(n.Tenant), dash(joined(n.Subnets)), dash(joined(n.Ranges)), dash(strings.Join(n.Policies, " ")))
	}
	return t
}

func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func joined[E fmt.Stringer](all []E) string {
	var words []string
	for _, e := range all {
		words = append(words, e.String())
	}
	return strings.Join(words, " ")
}
