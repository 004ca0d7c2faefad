package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"windtunnel/internal/stdout"
	"windtunnel/lab/agent"
	"windtunnel/lab/delayline"
	"windtunnel/lab/host"
	"windtunnel/lab/system"
	"windtunnel/lab/traffic"
	"windtunnel/lab/vm/guest"
)

// hidden runs the commands that the lab itself starts: the node's agent, and client and server of
// the traffic generator. It runs before cobra parses the
// command line. It also runs the command ntttcp, because cobra cannot parse NTttcp's
// flags.
func hidden(args []string) bool {
	if len(args) == 0 {
		return false
	}
	switch args[0] {
	case "agent":
		if err := agent.Serve(version, os.Stdin, os.Stdout, nil); err != nil {
			fmt.Fprintln(os.Stderr, "windtunnel agent:", err)
			os.Exit(1)
		}
		return true
	case host.Command:
		exitAfter("windtunnel host:", host.Serve(version, args[len(args)-1], os.Stdin, os.Stdout))
	case host.AgentCommand:
		exitAfter("windtunnel node:", host.Agent(version, args[1:], os.Stdin, os.Stdout))
	case delayline.Command:
		exitAfter("windtunnel delay-line:", delayline.Serve(args[1:], os.Stdin))
	case system.KeepCommand:
		system.Keep()
		return true
	case guest.Command:
		guest.Main(func(port *os.File) error { return agent.Serve(version, port, port, nil) })
	case "traffic":
		os.Exit(traffic.Worker(args[1:], os.Stdout, os.Stderr))
	case "ntttcp":
		out := &stdout.File{}
		code := traffic.NTttcp(args[1:], out, os.Stderr)
		if err := out.Or(nil); err != nil && code == 0 {
			exitAfter("windtunnel ntttcp:", err)
		}
		os.Exit(code)
	}
	return false
}

// exitAfter ends the program, with an error if there is one.
func exitAfter(who string, err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, who, err)
		os.Exit(1)
	}
	os.Exit(0)
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
