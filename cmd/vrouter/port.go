package main

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"windtunnel/internal/cli"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/inspect"
	"windtunnel/vrouter/model"
)

func portCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "port",
		Short: "Connect workloads to networks",
		Example: `  vrouter port add --network red --netns n1
  vrouter port list`,
	}
	cmd.AddCommand(portAddCommand(), portListCommand(), portGetCommand(), portDeleteCommand())
	return cmd
}

func portAddCommand() *cobra.Command {
	request := model.PortRequest{Port: model.Port{Origin: model.Added}}
	var output format
	cmd := &cobra.Command{
		Use:   "add --network NETWORK --netns NETNS | --device DEVICE | --host",
		Short: "Connect a workload on this node and print its addresses",
		Long: `--netns creates a pair of devices and configures addresses, MTU and routes on its end in
the namespace. --device connects an existing device of the node, such as a tap,
and does not configure it. --host gives the node itself an address and a route to
the network; the port's policies decide who can reach the node.

Without --ip and --mac the addresses are allocated. The port forwards packets when
the command returns. It survives restarts of the agent.`,
		Example: `  vrouter port add --network red --netns n1
  vrouter port add --network red --netns n1 --interface eth1 --ip 10.0.0.7 --ip fd00::7
  vrouter port add --network red --netns n1 --ingress 100M --egress 50M
  vrouter port add --network red --device tap0 --mac 02:00:00:00:00:07 --name vm7`,
		Args: cli.Takes(0, 0),
		RunE: withAgent(func(ctx context.Context, cmd *cobra.Command, c *api.Client, _ []string) error {
			if err := checkAttachment(&request.Attach); err != nil {
				return cli.Misuse(err)
			}
			port, err := c.AddPort(ctx, request)
			if err != nil {
				return err
			}
			return describe(cmd.OutOrStdout(), output, port, addedFields(port))
		}),
	}
	flags, attach := cmd.Flags(), &request.Attach
	flags.StringVar(&request.Network, "network", "", "Name of the network")
	flags.StringVar(&attach.Netns, "netns", "", "Network namespace of the workload: a `name` or a path")
	flags.StringVar(&attach.Device, "device", "", "Existing `device` of the node to connect (instead of --netns)")
	flags.BoolVar(&attach.Host, "host", false, "Connect this node itself (instead of --netns)")
	flags.StringVar(&attach.Interface, "interface", "", "The workload's `device` in its namespace (default eth0)")
	flags.BoolVar(&attach.AcceptRA, "accept-ra", false, "Let the workload's device take addresses and routes from router advertisements")
	flags.BoolVar(&request.Router, "router", false, "Let the workload advertise itself as an IPv6 router, and answer DHCP")
	listFlag(cmd, &request.IPs, parseAddress, "ip", "Use this `address` of the network's subnets (repeatable)")
	listFlag(cmd, &request.AllowSources, parsePrefix, "allow-source", "Let the workload send from this `prefix` too, for example as a firewall (repeatable)")
	listFlag(cmd, &request.Floating, parseAddress, "floating", "Floating `address` of the network's pool, at which hosts outside reach the workload; at most one IPv4 and one IPv6 (repeatable)")
	listFlag(cmd, &request.From, model.ParseRange, "from", "Allocate an address from `FIRST-LAST` or a prefix (repeatable)")
	flags.TextVar(&request.MAC, "mac", model.MAC{}, "MAC `address` of the workload")
	flags.StringVar(&request.Name, "name", "", "Name of the port (default: from network and address)")
	flags.StringSliceVar(&request.Policies, "policy", nil, "Name of a policy, checked before the network's policies (repeatable)")
	flags.TextVar(&request.Bandwidth.Ingress, "ingress", model.Rate(0), "Limit received traffic to this `rate` in bit/s, such as 100M (default no limit)")
	flags.TextVar(&request.Bandwidth.Egress, "egress", model.Rate(0), "Limit sent traffic to this `rate` in bit/s (default no limit)")
	outputFlag(cmd, &output)
	cmd.MarkFlagRequired("network")
	cmd.RegisterFlagCompletionFunc("network", completeNetworks)
	cmd.RegisterFlagCompletionFunc("policy", completePolicies)
	return cmd
}

// checkAttachment refuses flags that do not attach one device. It makes the path of a namespace
// absolute, because the agent has a different working directory.
func checkAttachment(a *model.Attachment) (err error) {
	switch {
	case a.Netns+a.Device == "" && !a.Host:
		return fmt.Errorf("the workload is missing: give --netns, --device or --host")
	case a.Host && a.Netns+a.Device != "":
		return fmt.Errorf("--host connects the node itself: remove --netns and --device")
	case a.Netns != "" && a.Device != "":
		return fmt.Errorf("--netns and --device exclude each other: give one")
	case a.Device != "" && a.Interface != "":
		return fmt.Errorf("--interface is a device in a namespace: use it with --netns")
	case strings.ContainsRune(a.Netns, '/'):
		if a.Netns, err = filepath.Abs(a.Netns); err != nil {
			return fmt.Errorf("--netns: %w", err)
		}
	}
	return nil
}

// addedFields are the fields of a new port.
func addedFields(p api.Port) (fields inspect.Fields) {
	fields.Add("Port", p.Name)
	fields.Add("Network", p.Network)
	if p.Attach.Netns != "" {
		fields.Add("Workload", workload(p.Attach))
	}
	fields.Add("Device", p.Device)
	fields.Add("MAC", p.MAC.String())
	if len(p.Prefixes) == 0 {
		fields.Add("Address", "none: its network has no subnets")
	}
	for _, a := range p.Prefixes {
		fields.Add("Address", a.String())
	}
	for _, g := range p.Gateways {
		fields.Add("Gateway", g.String())
	}
	for _, a := range p.Floating {
		fields.Add("Floating", a.String())
	}
	if p.Bandwidth != (model.Bandwidth{}) {
		fields.Add("Bandwidth", bandwidthText(p.Bandwidth))
	}
	fields.Add("MTU", fmt.Sprint(p.MTU))
	fields.Add("Took", p.Took.Round(100*time.Microsecond).String())
	return fields
}

func bandwidthText(b model.Bandwidth) string {
	var words []string
	if b.Ingress > 0 {
		words = append(words, "receives "+b.Ingress.String()+"bit/s")
	}
	if b.Egress > 0 {
		words = append(words, "sends "+b.Egress.String()+"bit/s")
	}
	return strings.Join(words, ", ")
}

func portDeleteCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "delete NAME…",
		Short:             "Delete ports on any node; `apply` deletes the ports of a state file",
		Aliases:           []string{"rm"},
		Example:           "  vrouter port delete web1",
		Args:              cli.Takes(1, math.MaxInt),
		ValidArgsFunction: completeOwnPorts,
		RunE: withAgent(func(ctx context.Context, cmd *cobra.Command, c *api.Client, args []string) error {
			for _, name := range args {
				applied, err := c.DeletePort(ctx, name)
				if err != nil {
					return err
				}
				fmt.Fprintf(cmd.OutOrStdout(), "deleted port %s; %s\n", name, summary(applied))
				warn(cmd, applied.Warnings)
			}
			return nil
		}),
	}
}

// portRow is a port and its vif.
type portRow struct {
	model.Port
	Vif *inspect.Vif `json:"vif,omitempty"` // nil: on another node, or not connected
}

func portListCommand() *cobra.Command {
	var output format
	var network string
	var all bool
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the ports of this node, or with --all of all nodes",
		Aliases: []string{"ls"},
		Example: "  vrouter port list --network red\n  vrouter port list --all -o json",
		Args:    cli.Takes(0, 0),
		RunE: withAgent(func(ctx context.Context, cmd *cobra.Command, c *api.Client, _ []string) error {
			rows, err := portRows(ctx, c, network, all)
			if err != nil {
				return err
			}
			return show(cmd.OutOrStdout(), output, rows, portTable(rows))
		}),
	}
	outputFlag(cmd, &output)
	cmd.Flags().StringVar(&network, "network", "", "Only ports of the network with this `name`")
	cmd.Flags().BoolVar(&all, "all", false, "Include the ports of other nodes")
	cmd.RegisterFlagCompletionFunc("network", completeNetworks)
	return cmd
}

// portRows joins the ports of the desired state with the vifs of this node.
func portRows(ctx context.Context, c *api.Client, network string, all bool) ([]portRow, error) {
	status, err := c.Status(ctx)
	if err != nil {
		return nil, err
	}
	read := c.KnownState
	if all {
		read = c.State
	}
	state, err := read(ctx)
	if err != nil {
		return nil, err
	}
	if network != "" {
		if _, err := find("network", network, state.Networks, func(n model.Network) string { return n.Name }); err != nil {
			return nil, err
		}
	}
	vifs, err := c.Vifs(ctx, 0)
	if err != nil {
		return nil, err
	}
	rows := []portRow{}
	for _, p := range state.Ports {
		if network != "" && p.Network != network || !all && p.Node != status.Node {
			continue
		}
		row := portRow{Port: p}
		if p.Node == status.Node {
			if at := slices.IndexFunc(vifs, func(v inspect.Vif) bool { return v.Port == p.Name }); at >= 0 {
				row.Vif = &vifs[at]
			}
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func portGetCommand() *cobra.Command {
	var output format
	cmd := &cobra.Command{
		Use:               "get NAME",
		Short:             "Show one port with all its fields",
		Example:           "  vrouter port get web1",
		Args:              cli.Takes(1, 1),
		ValidArgsFunction: firstArgument(completePorts),
		RunE: withAgent(func(ctx context.Context, cmd *cobra.Command, c *api.Client, args []string) error {
			rows, err := portRows(ctx, c, "", true)
			if err != nil {
				return err
			}
			at := slices.IndexFunc(rows, func(r portRow) bool { return r.Name == args[0] })
			if at < 0 {
				return fmt.Errorf("there is no port %q; see `vrouter port list --all`", args[0])
			}
			return describe(cmd.OutOrStdout(), output, rows[at], portFields(rows[at]))
		}),
	}
	outputFlag(cmd, &output)
	return cmd
}
