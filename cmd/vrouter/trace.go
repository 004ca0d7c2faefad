package main

import (
	"context"
	"fmt"
	"net/netip"
	"os"

	"github.com/spf13/cobra"

	"windtunnel/internal/cli"
	"windtunnel/internal/screen"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/inspect"
)

func traceCommand() *cobra.Command {
	var r api.TraceRequest
	var output format
	cmd := &cobra.Command{
		Use:   "trace --from PORT --to IP",
		Short: "Show every lookup of a test packet, and whether it is forwarded",
		Long: `Runs a test packet through the program that forwards packets, with its current
tables. Nothing is sent and no counter changes. If the policies of a receiver on another
node deny the packet, the last line says so.`,
		Example: `  vrouter trace --from web1 --to 10.0.0.4
  vrouter trace --from web1 --to 10.0.0.4 --proto tcp --dport 80
  vrouter trace --from web1 --to 2001:db8::4 --proto udp --dport 53 --length 1400`,
		Args: cli.Takes(0, 0),
		RunE: withAgent(func(ctx context.Context, cmd *cobra.Command, c *api.Client, _ []string) error {
			if err := checkTrace(r); err != nil {
				return cli.Misuse(err)
			}
			trace, err := requestTrace(ctx, c, r)
			if err != nil {
				return err
			}
			return printAs(cmd.OutOrStdout(), output, trace, trace.Text(screen.Of(cmd.OutOrStdout())))
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&r.From, "from", "", "Port of the sending workload")
	flags.TextVar(&r.To, "to", netip.Addr{}, "Destination `address`")
	flags.StringVar(&r.Protocol, "proto", "icmp", "Protocol of the packet: tcp, udp or icmp")
	flags.Uint16Var(&r.SourcePort, "sport", 0, "Source port (default: an ephemeral port)")
	flags.Uint16Var(&r.DestinationPort, "dport", 0, "Destination port")
	flags.IntVar(&r.Length, "length", 0, "Length of the IP packet in `bytes` (default: the smallest)")
	outputFlag(cmd, &output)
	cmd.MarkFlagRequired("from")
	cmd.MarkFlagRequired("to")
	cmd.RegisterFlagCompletionFunc("from", completeOwnPorts)
	cmd.RegisterFlagCompletionFunc("proto", words("tcp", "udp", "icmp"))
	return cmd
}

// requestTrace returns the agent's trace and the device by which the packet
// leaves the node.
func requestTrace(ctx context.Context, c *api.Client, r api.TraceRequest) (inspect.Trace, error) {
	trace, err := c.Trace(ctx, r)
	switch {
	case err != nil && r.Length > maxTestRun():
		return trace, fmt.Errorf("%w; the kernel's test run takes packets of up to about %d bytes: use a smaller --length", err, maxTestRun())
	case err != nil || trace.Dropped:
		return trace, err
	}
	nexthops, err := c.Nexthops(ctx, 0)
	return trace.WithLeaves(nexthops), err
}

// maxTestRun is the largest packet for a BPF test run, in bytes: a page minus
// the bytes that the kernel reserves (bpf_test_init in net/bpf/test_run.c).
func maxTestRun() int { return os.Getpagesize() - 512 }

// checkTrace refuses flags that do not make a packet.
func checkTrace(r api.TraceRequest) error {
	switch {
	case r.Protocol != "tcp" && r.Protocol != "udp" && r.Protocol != "icmp":
		return fmt.Errorf("--proto %s: write tcp, udp or icmp", r.Protocol)
	case r.Protocol == "icmp" && (r.SourcePort != 0 || r.DestinationPort != 0):
		return fmt.Errorf("--sport and --dport need --proto tcp or udp: an ICMP packet has no ports")
	case r.Length < 0 || r.Length > 65535:
		return fmt.Errorf("--length %d: an IP packet has 0 to 65535 bytes", r.Length)
	}
	return nil
}
