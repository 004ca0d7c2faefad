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

// hidden runs the commands that other parts of the program start: the node's agent,
// the generator's two ends, the UDP tunnel. It runs them before any other set-up. It
// also runs the generator with NTttcp's flags, because cobra cannot parse these
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

// ntttcpCommand only adds ntttcp to the list of commands: hidden runs it.
func ntttcpCommand() *cobra.Command {
	return &cobra.Command{
		Use:                "ntttcp -s|-r -m threads,cpu,ip [flags]",
		Short:              "Run the built-in traffic generator, with NTttcp's flags",
		DisableFlagParsing: true,
		Run:                func(*cobra.Command, []string) {},
	}
}
