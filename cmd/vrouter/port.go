package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"windtunnel/vrouter/api"
	"windtunnel/vrouter/inspect"
	"windtunnel/vrouter/model"
)

func portCommand() *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "port",
		Short: "Connect workloads to networks",
		Example: `  vrouter port add --network red --netns n1
  vrouter port list`,
	})
	cmd.AddCommand(portAddCommand(), portListCommand(), portGetCommand(), portDeleteCommand())
	return cmd
}

// portFlags are the flags of `port add`, not yet parsed.
type portFlags struct {
	name, network, netns, device, iface, mac string
	ips, from                                []string
	policies                                 []string
	bandwidth                                model.Bandwidth
	host, acceptRA, router                   bool
}

func portAddCommand() *cobra.Command {
	var f portFlags
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
		Args: cobra.NoArgs,
		RunE: withAgent(func(ctx context.Context, cmd *cobra.Command, c *api.Client, _ []string) error {
			request, err := f.request()
			if err != nil {
				return misuse{err}
			}
			port, err := c.AddPort(ctx, request)
			switch {
			case err != nil:
				return err
			case output == asJSON:
				return writeJSON(cmd.OutOrStdout(), port)
			}
			return describePort(cmd.OutOrStdout(), port)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.network, "network", "", "Name of the network")
	flags.StringVar(&f.netns, "netns", "", "Network namespace of the workload: a `name` or a path")
	flags.StringVar(&f.device, "device", "", "Existing `device` of the node to connect (instead of --netns)")
	flags.BoolVar(&f.host, "host", false, "Connect this node itself (instead of --netns)")
	flags.StringVar(&f.iface, "interface", "", "The workload's `device` in its namespace (default eth0)")
	flags.BoolVar(&f.acceptRA, "accept-ra", false, "Let the workload's device take addresses and routes from router advertisements")
	flags.BoolVar(&f.router, "router", false, "Let the workload advertise itself as an IPv6 router, and answer DHCP")
	flags.StringSliceVar(&f.ips, "ip", nil, "Address of the network's subnets (repeatable)")
	flags.StringSliceVar(&f.from, "from", nil, "Allocate an address from this `prefix` (repeatable)")
	flags.StringVar(&f.mac, "mac", "", "MAC `address` of the workload")
	flags.StringVar(&f.name, "name", "", "Name of the port (default: from network and address)")
	flags.StringSliceVar(&f.policies, "policy", nil, "Name of a policy, checked before the network's policies (repeatable)")
	flags.TextVar(&f.bandwidth.Ingress, "ingress", model.Rate(0), "Limit received traffic to this `rate` in bit/s, such as 100M (default no limit)")
	flags.TextVar(&f.bandwidth.Egress, "egress", model.Rate(0), "Limit sent traffic to this `rate` in bit/s (default no limit)")
	outputFlag(cmd, &output)
	cmd.MarkFlagRequired("network")
	cmd.RegisterFlagCompletionFunc("network", completeNetworks)
	cmd.RegisterFlagCompletionFunc("policy", completePolicies)
	return cmd
}

// request parses and checks the flags.
func (f portFlags) request() (model.PortRequest, error) {
	r := model.PortRequest{Port: model.Port{Name: f.name, Network: f.network, Policies: f.policies, Bandwidth: f.bandwidth, Router: f.router, Origin: model.Added}}
	switch {
	case f.netns == "" && f.device == "" && !f.host:
		return r, fmt.Errorf("the workload is missing: give --netns, --device or --host")
	case f.host && f.netns+f.device != "":
		return r, fmt.Errorf("--host connects the node itself: remove --netns and --device")
	case f.netns != "" && f.device != "":
		return r, fmt.Errorf("--netns and --device exclude each other: give one")
	case f.device != "" && f.iface != "":
		return r, fmt.Errorf("--interface is a device in a namespace: use it with --netns")
	}
	r.Attach = model.Attachment{Netns: f.netns, Device: f.device, Interface: f.iface, Host: f.host, AcceptRA: f.acceptRA}
	if strings.ContainsRune(f.netns, '/') {
		// The agent has a different working directory.
		path, err := filepath.Abs(f.netns)
		if err != nil {
			return r, fmt.Errorf("--netns %s: %w", f.netns, err)
		}
		r.Attach.Netns = path
	}
	for _, text := range f.ips {
		a, err := netip.ParseAddr(text)
		if err != nil {
			return r, fmt.Errorf("--ip %q is not an IP address; write it without a prefix length", text)
		}
		r.IPs = append(r.IPs, a)
	}
	for _, text := range f.from {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return r, fmt.Errorf("--from %q is not a prefix; write one such as 10.1.2.0/24", text)
		}
		r.From = append(r.From, p)
	}
	if f.mac != "" {
		mac, err := net.ParseMAC(f.mac)
		if err != nil || len(mac) != len(r.MAC) {
			return r, fmt.Errorf("--mac %q is not a MAC address; write one such as 02:00:00:00:00:07", f.mac)
		}
		r.MAC = model.MAC(mac)
	}
	return r, nil
}

func describePort(out io.Writer, p api.Port) error {
	fields := []inspect.Field{{Name: "Port", Value: p.Name}, {Name: "Network", Value: p.Network}}
	if p.Attach.Netns != "" {
		fields = append(fields, inspect.Field{Name: "Workload", Value: p.Attach.Interface + " in " + p.Attach.Netns})
	}
	fields = append(fields, inspect.Field{Name: "Device", Value: p.Device}, inspect.Field{Name: "MAC", Value: p.MAC.String()})
	if len(p.Prefixes) == 0 {
		fields = append(fields, inspect.Field{Name: "Address", Value: "none: its network has no subnets"})
	}
	for _, a := range p.Prefixes {
		fields = append(fields, inspect.Field{Name: "Address", Value: a.String()})
	}
	for _, g := range p.Gateways {
		fields = append(fields, inspect.Field{Name: "Gateway", Value: g.String()})
	}
	if p.Bandwidth != (model.Bandwidth{}) {
		fields = append(fields, inspect.Field{Name: "Bandwidth", Value: bandwidthText(p.Bandwidth)})
	}
	fields = append(fields, inspect.Field{Name: "MTU", Value: fmt.Sprint(p.MTU)},
		inspect.Field{Name: "Took", Value: p.Took.Round(100 * time.Microsecond).String()})
	_, err := io.WriteString(out, inspect.Describe(fields))
	return err
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
		Args:              cobra.MinimumNArgs(1),
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
		Args:    cobra.NoArgs,
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
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: firstArgument(completePorts),
		RunE: withAgent(func(ctx context.Context, cmd *cobra.Command, c *api.Client, args []string) error {
			rows, err := portRows(ctx, c, "", true)
			if err != nil {
				return err
			}
			at := slices.IndexFunc(rows, func(r portRow) bool { return r.Name == args[0] })
			switch {
			case at < 0:
				return fmt.Errorf("there is no port %q; see `vrouter port list --all`", args[0])
			case output == asJSON:
				return writeJSON(cmd.OutOrStdout(), rows[at])
			}
			_, err = io.WriteString(cmd.OutOrStdout(), inspect.Describe(portFields(rows[at])))
			return err
		}),
	}
	outputFlag(cmd, &output)
	return cmd
}
