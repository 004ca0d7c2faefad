package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"windtunnel/lab/agent"
	"windtunnel/lab/traffic"
	"windtunnel/lab/udptun"
	"windtunnel/lab/vm/guest"
)

// hidden runs the commands that the lab itself starts: the node's agent, client and
// server of the traffic generator, and the UDP tunnel. It runs before cobra parses the
// command line. It also runs the command ntttcp, because cobra cannot parse NTttcp's
// flags.
func hidden(args []string) bool {
	if len(args) == 0 {
		return false
	}
	switch args[0] {
	case "agent":
		if err := agent.Serve(version, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "windtunnel agent:", err)
			os.Exit(1)
		}
		return true
	case guest.Command:
		guest.Main(func(port *os.File) error { return agent.Serve(version, port, port) })
	case "traffic":
		os.Exit(traffic.Worker(args[1:], os.Stdout, os.Stderr))
	case udptun.Name:
		os.Exit(udptun.Command(args[1:], os.Stdout, os.Stderr))
	case "ntttcp":
		os.Exit(traffic.NTttcp(args[1:], os.Stdout, os.Stderr))
	}
	return false
}

// ntttcpCommand adds ntttcp to the help. The function hidden runs the command.
func ntttcpCommand() *cobra.Command {
	return &cobra.Command{
		Use:                "ntttcp -s|-r -m threads,cpu,ip [flags]",
		Short:              "Run the built-in traffic generator, with NTttcp's flags",
		DisableFlagParsing: true,
		Run:                func(*cobra.Command, []string) {},
	}
}
