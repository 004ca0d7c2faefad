package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"windtunnel/internal/cli"
	"windtunnel/internal/lists"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/inspect"
)

func flowCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "flow",
		Short:   "Show the flows of vifs that have a policy",
		Example: "  vrouter flow list --vrf red\n  vrouter flow get tcp 10.0.0.3:80 10.0.0.4:51820",
	}
	cmd.AddCommand(flowListCommand(), flowGetCommand())
	return cmd
}

// flowFilter holds the filter flags of `flow list`.
type flowFilter struct {
	vrf, port, protocol, match string
}

func flowListCommand() *cobra.Command {
	var output format
	var f flowFilter
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List flows, all or filtered",
		Aliases: []string{"ls"},
		Long: `Lists flows from the view of the workload: the column Local has its end. The column
By has the end that sent the first packet. A port has flows only if the port or its
network has a policy.

--match has the syntax of OpenContrail's flow utility: one end, or both ends with
a comma between them, in either order.`,
		Example: `  vrouter flow list --port web1
  vrouter flow list --match 10.0.0.4
  vrouter flow list --match "10.0.0.3:80,10.0.0.0/24&proto tcp"
  vrouter flow list --match [2001:db8::1]:443 --proto udp -o json`,
		Args: cli.Takes(0, 0),
		RunE: withAgent(func(ctx context.Context, cmd *cobra.Command, c *api.Client, _ []string) error {
			keep, err := f.selector()
			if err != nil {
				return cli.Misuse(err)
			}
			vrf, err := vrfOf(ctx, c, f.vrf)
			if err != nil {
				return err
			}
			rows, err := c.Flows(ctx, vrf)
			if err != nil {
				return err
			}
			rows = slices.DeleteFunc(rows, func(f inspect.Flow) bool { return !keep(f) })
			return show(cmd.OutOrStdout(), output, rows, inspect.FlowTable(rows))
		}),
	}
	outputFlag(cmd, &output)
	vrfFlag(cmd, &f.vrf)
	cmd.Flags().StringVar(&f.port, "port", "", "Only flows of the port with this `name`")
	cmd.Flags().StringVar(&f.protocol, "proto", "", "Only flows of this protocol: tcp, udp, icmp, icmp6, sctp or a `number`")
	cmd.Flags().StringVar(&f.match, "match", "", "Only flows of `ADDRESS[:PORT][,ADDRESS[:PORT]]`; prefixes are allowed")
	cmd.RegisterFlagCompletionFunc("port", completeOwnPorts)
	cmd.RegisterFlagCompletionFunc("proto", words("tcp", "udp", "icmp", "icmp6", "sctp"))
	return cmd
}

// selector returns a function that reports whether the filter selects a flow.
func (f flowFilter) selector() (func(inspect.Flow) bool, error) {
	var tests []func(inspect.Flow) bool
	if f.port != "" {
		tests = append(tests, func(x inspect.Flow) bool { return x.Port == f.port })
	}
	if f.protocol != "" {
		p, err := inspect.ParseProtocol(f.protocol)
		if err != nil {
			return nil, fmt.Errorf("--proto: %w", err)
		}
		tests = append(tests, func(x inspect.Flow) bool { return x.Protocol == p })
	}
	if f.match != "" {
		m, err := inspect.ParseMatch(f.match)
		if err != nil {
			return nil, fmt.Errorf("--match: %w", err)
		}
		tests = append(tests, m.Covers)
	}
	return func(x inspect.Flow) bool {
		return !slices.ContainsFunc(tests, func(test func(inspect.Flow) bool) bool { return !test(x) })
	}, nil
}

func flowGetCommand() *cobra.Command {
	var output format
	var vrf string
	cmd := &cobra.Command{
		Use:     "get PROTOCOL LOCAL REMOTE",
		Short:   "Show one flow by its protocol and ends",
		Example: "  vrouter flow get tcp 10.0.0.3:80 10.0.0.4:51820\n  vrouter flow get icmp 10.0.0.3:777 10.0.0.4",
		Args:    cli.Takes(3, 3),
		RunE: withAgent(func(ctx context.Context, cmd *cobra.Command, c *api.Client, args []string) error {
			id, err := vrfOf(ctx, c, vrf)
			if err != nil {
				return err
			}
			found, err := findFlows(ctx, c, id, args)
			if err != nil {
				return err
			}
			texts := lists.Map(found, func(f inspect.Flow) string { return inspect.FlowFields(f).String() })
			return printAs(cmd.OutOrStdout(), output, found, strings.Join(texts, "\n"))
		}),
	}
	outputFlag(cmd, &output)
	vrfFlag(cmd, &vrf)
	return cmd
}

// findFlows finds flows by protocol and ends. It finds several if networks use
// the same addresses, or if both ends are on this node.
func findFlows(ctx context.Context, c *api.Client, vrf uint32, args []string) ([]inspect.Flow, error) {
	match, err := inspect.ParseMatch(fmt.Sprintf("%s,%s&proto %s", args[1], args[2], args[0]))
	if err != nil {
		return nil, cli.Misuse(err)
	}
	rows, err := c.Flows(ctx, vrf)
	if err != nil {
		return nil, err
	}
	rows = slices.DeleteFunc(rows, func(f inspect.Flow) bool {
		return f.Protocol != *match.Protocol || !match.Ends[0].Covers(f.Local) || !match.Ends[1].Covers(f.Remote)
	})
	if len(rows) == 0 {
		return nil, fmt.Errorf("no %s flow from %s to %s on this node; see `vrouter flow list --match %s,%s`", args[0], args[1], args[2], args[1], args[2])
	}
	return rows, nil
}
