package main

import (
	"github.com/spf13/cobra"

	"windtunnel/vrouter/api"
	"windtunnel/vrouter/inspect"
)

func vrfstatsCommand() *cobra.Command {
	return listing(&cobra.Command{
		Use:   "vrfstats",
		Short: "Show packets and bytes by network and encapsulation",
		Long: `Shows the counts since the tables were created. Workloads of this node send TX and
receive RX; "local" is traffic between two of them. Packets are packets on the wire.
Bytes are the bytes of inner frames, without the outer headers.`,
		Example: "  vrouter vrfstats\n  vrouter vrfstats -o json",
	}, (*api.Client).VRFStats, inspect.VRFStatsTable)
}

func fallbackstatsCommand() *cobra.Command {
	return listing(&cobra.Command{
		Use:   "fallbackstats",
		Short: "Count packets that direct cannot carry, by network and reason",
		Long: `Counts the packets to nodes that are reached by direct that direct cannot carry. They take
the next encapsulation that both nodes offer; if there is none, they are dropped
(untranslatable). The counts are since the tables were created. Packets are packets on the
wire; vrfstats counts them by the encapsulation that they took.`,
		Example: "  vrouter fallbackstats\n  watch -d vrouter fallbackstats",
	}, (*api.Client).Fallbacks, inspect.FallbackTable)
}
