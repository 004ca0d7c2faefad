package main

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"windtunnel/internal/cli"
	"windtunnel/internal/lists"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/inspect"
	"windtunnel/vrouter/model"
)

func networkCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "network",
		Short: "Create, change and list virtual networks",
		Example: `  vrouter network create red --subnet 10.1.0.0/16 --subnet fd00:1::/64
  vrouter network list`,
	}
	kind := objects[model.Network]{
		noun: "network", all: (*api.Client).Networks, name: func(n model.Network) string { return n.Name },
		table: networkTable, complete: completeNetworks, remove: (*api.Client).DeleteNetwork,
	}
	cmd.AddCommand(networkCreateCommand(), networkSetCommand(), networkNATCommand(), kind.list(), kind.get(), kind.delete("Delete networks that have no ports"))
	return cmd
}

// networkFlags are the flags of `network create` and `network set`.
type networkFlags struct {
	model.Network
	targets       []model.RouteTarget // imported and exported
	bridge, route bool
}

func (f *networkFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	listFlag(cmd, &f.Subnets, parsePrefix, "subnet", "Subnet as a `prefix`; its first address is the gateway (repeatable)")
	listFlag(cmd, &f.Ranges, model.ParseRange, "range", "Allocate addresses only from `FIRST-LAST` or a prefix (repeatable; default: the subnets)")
	flags.StringVar(&f.Tenant, "tenant", "", "Name of the tenant; different tenants can use the same subnets")
	flags.StringSliceVar(&f.Policies, "policy", nil, "Name of a policy for all ports of the network (repeatable)")
	flags.BoolVar(&f.NodeAccess, "node-access", false, "Connect the nodes: workloads reach their node, and by its kernel addresses outside the subnets")
	listFlag(cmd, &f.targets, model.ParseRouteTarget, "route-target", "Import and export the routes of a route `target`, such as 64512:1 (repeatable)")
	listFlag(cmd, &f.Import, model.ParseRouteTarget, "import", "Import the routes that have a route `target` (repeatable)")
	listFlag(cmd, &f.Export, model.ParseRouteTarget, "export", "Export the routes of the network with a route `target` (repeatable)")
	flags.TextVar(&f.RD, "rd", model.RouteDistinguisher{}, "Route `distinguisher` in BGP, such as 64512:1; auto: router id of the node, and id of the network")
	flags.BoolVar(&f.DHCP, "dhcp", false, "Answer DHCP: give workloads, such as virtual machines, their address, MTU and routes")
	listFlag(cmd, &f.DNS, netip.ParseAddr, "dns", "Answer DNS at an `address` of a subnet: for PORT.NETWORK with the addresses of the port, else by the resolvers of the node (repeatable)")
	flags.BoolVar(&f.bridge, "l2", false, "Bridge Ethernet frames; with --l3, also route IP")
	flags.BoolVar(&f.route, "l3", false, "Route IP (the default)")
	cmd.RegisterFlagCompletionFunc("policy", completePolicies)
}

// fill copies the flags that were given into a network.
func (f *networkFlags) fill(cmd *cobra.Command, n *model.Network) {
	forwarding := func() {
		n.Forwarding = cmp.Or(map[[2]bool]model.Forwarding{{true, false}: model.L2, {true, true}: model.L2L3}[[2]bool{f.bridge, f.route}], model.L3)
	}
	for name, set := range map[string]func(){
		"subnet": func() { n.Subnets = f.Subnets }, "range": func() { n.Ranges = f.Ranges },
		"tenant": func() { n.Tenant = f.Tenant }, "policy": func() { n.Policies = f.Policies },
		"node-access":  func() { n.NodeAccess = f.NodeAccess },
		"route-target": func() { n.Import, n.Export = f.targets, f.targets },
		"rd":           func() { n.RD = f.RD },
		"dhcp":         func() { n.DHCP = f.DHCP },
		"dns":          func() { n.DNS = f.DNS },
		"l2":           forwarding, "l3": forwarding,
	} {
		if cmd.Flags().Changed(name) {
			set()
		}
	}
	if cmd.Flags().Changed("import") {
		n.Import = slices.Concat(f.targets, f.Import)
	}
	if cmd.Flags().Changed("export") {
		n.Export = slices.Concat(f.targets, f.Export)
	}
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
		Args: cli.Takes(1, 1),
		RunE: withAgent(func(ctx context.Context, cmd *cobra.Command, c *api.Client, args []string) error {
			n := model.Network{Name: args[0], ID: f.ID, VNI: f.VNI}
			f.fill(cmd, &n)
			made, err := c.AddNetwork(ctx, n)
			if err != nil {
				return err
			}
			return describe(cmd.OutOrStdout(), output, made, networkTable([]model.Network{made}).Fields(0))
		}),
	}
	f.add(cmd)
	cmd.Flags().Uint32Var(&f.ID, "id", 0, "Number of the network, 1 to 4095 (default: next free)")
	cmd.Flags().Uint32Var(&f.VNI, "vni", 0, "VXLAN network identifier, a `number` (default: next free)")
	outputFlag(cmd, &output)
	return cmd
}

func networkSetCommand() *cobra.Command {
	var f networkFlags
	cmd := &cobra.Command{
		Use:               "set NAME",
		Short:             "Change a network; flags that are not given keep their values",
		Example:           "  vrouter network set red --policy web --policy ssh",
		Args:              cli.Takes(1, 1),
		ValidArgsFunction: firstArgument(completeNetworks),
		RunE: withAgent(func(ctx context.Context, cmd *cobra.Command, c *api.Client, args []string) error {
			was, err := networkNamed(ctx, c, args[0])
			if err != nil {
				return err
			}
			n := was
			f.fill(cmd, &n)
			made, err := c.ChangeNetwork(ctx, was, n)
			if err != nil {
				return err
			}
			return describe(cmd.OutOrStdout(), asTable, made, networkTable([]model.Network{made}).Fields(0))
		}),
	}
	f.add(cmd)
	return cmd
}

func networkNamed(ctx context.Context, c *api.Client, name string) (model.Network, error) {
	all, err := c.Networks(ctx)
	if err != nil {
		return model.Network{}, err
	}
	return find("network", name, all, func(n model.Network) string { return n.Name })
}

func networkTable(rows []model.Network) inspect.Table {
	t := inspect.Table{
		Empty: "no networks; create one with `vrouter network create`",
		Columns: []inspect.Column{
			{Name: "Network"}, {Name: "Id", Right: true}, {Name: "VNI", Right: true, Leave: 3}, {Name: "Forwarding", Leave: 2},
			{Name: "Tenant", Leave: 5}, {Name: "Subnets", Least: 12}, {Name: "Ranges", Leave: 4}, {Name: "Policies", Leave: 1},
			{Name: "Import", Leave: 6}, {Name: "Export", Leave: 7}, {Name: "RD", Leave: 8}, {Name: "Pool", Leave: 9}, {Name: "DHCP", Leave: 10}, {Name: "DNS", Leave: 11},
		},
	}
	for _, n := range rows {
		dhcp := ""
		if n.DHCP {
			dhcp = "yes"
		}
		t.Add(n.Name, fmt.Sprint(n.ID), fmt.Sprint(n.VNI), string(n.Forwarding), dash(n.Tenant), joined(n.Subnets), joined(n.Ranges), dash(strings.Join(n.Policies, " ")),
			joined(n.Import), joined(n.Export), n.RD.String(), joined(n.NATPool), dash(dhcp), joined(n.DNS))
	}
	return t
}

func dash(text string) string { return cmp.Or(text, "-") }

// joined lists values, separated by blanks.
func joined[E fmt.Stringer](all []E) string {
	words := lists.Map(all, E.String)
	return dash(strings.Join(words, " "))
}
