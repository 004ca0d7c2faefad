// Command vrouter is a virtual router for overlay networks. It contains the
// agent and the commands that talk to the agent.
//
//	vrouter agent --config node.yaml           run on a compute node
//	vrouter apply -f state.yaml                set networks, ports, routes
//	vrouter network create red --subnet …      or create them one by one
//	vrouter port add --network red --netns n1  connect a workload
//	vrouter rt list --vrf red                  show its routes
//
// See `vrouter help` for the rest.
package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"windtunnel/internal/cli"
	"windtunnel/internal/phrase"
	"windtunnel/internal/stopsignal"
	"windtunnel/vrouter/cni"
	"windtunnel/vrouter/k8s"
)

// revision is set by the linker to the git revision that was built.
var revision = "unknown"

const version = "0.1.0"

// init reserves the first thread for main, which only waits. /proc/self/ns shows the namespaces of the
// first thread, so this thread must not enter the namespace of a workload.
func init() { runtime.LockOSThread() }

func main() {
	if os.Getenv("CNI_COMMAND") != "" {
		cni.Main("vrouter " + version + " (" + revision + "), a CNI plugin")
		return
	}
	if err := k8s.ExecHostProgram(); err != nil {
		printError(err)
		os.Exit(cli.ExitFailed)
	}
	status := make(chan int)
	go func() { status <- perform() }()
	os.Exit(<-status)
}

// perform runs the command that the arguments name, and returns the exit code.
func perform() int {
	ctx, stop := stopsignal.Context()
	cmd, err := cli.Execute(ctx, root())
	stop()
	return report(cmd, err)
}

// report prints a command's error once and returns the exit code.
func report(cmd *cobra.Command, err error) int {
	code := cli.ExitCode(err)
	switch {
	case errors.Is(err, errSilent):
	case code == cli.ExitFailed:
		printError(err)
	case code == cli.ExitUsage:
		printError(withHelpHint(cmd, err))
	}
	return code
}

// printError prints an error to stderr. Further lines are indented below the
// first.
func printError(err error) {
	const program = "vrouter: "
	text := strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", "\n"+strings.Repeat(" ", len(program)))
	fmt.Fprintln(os.Stderr, program+text)
}

func root() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "vrouter",
		Short: "A virtual router for overlay networks in eBPF: direct, VXLAN, MPLSoUDP and MPLSoGRE",
		Long: `vrouter connects workloads of virtual networks over an IP underlay.

An agent runs on each compute node. It writes the desired state into the kernel's
forwarding tables. The other commands talk to it over a unix socket that only root
can open. Packets keep flowing while the agent is stopped or upgraded.

Exit codes: 0 success, 1 failure, 2 wrong usage, 130 interrupted.`,
		Example: `  vrouter agent --config node.yaml &
  vrouter apply -f state.yaml
  vrouter port add --network red --netns n1
  vrouter trace --from web1 --to 10.0.0.4`,
		Version:       version + " (" + revision + ")",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	cmd.PersistentFlags().StringVar(&target.node, "node", "", "Name of the agent's node (default: the only agent on this host)")
	cmd.PersistentFlags().StringVar(&target.socket, "socket", "", "Path of the agent's socket")
	cmd.PersistentFlags().DurationVar(&target.timeout, "timeout", 10*time.Second, "Wait at most this `time` for the agent's answer (0: no limit; default of remove: 30s)")
	cmd.RegisterFlagCompletionFunc("node", completeNodes)
	cmd.AddGroup(
		&cobra.Group{ID: "run", Title: "Running:"},
		&cobra.Group{ID: "state", Title: "Desired state:"},
		&cobra.Group{ID: "tables", Title: "Forwarding state:"},
		&cobra.Group{ID: "traffic", Title: "Traffic and debugging:"},
	)
	for group, members := range map[string][]*cobra.Command{
		"run":     {agentCommand(), removeCommand(), statusCommand(), doctorCommand(), storeCommand(), dockerCommand(), cniCommand(), k8sCommand()},
		"state":   {applyCommand(), stateCommand(), networkCommand(), portCommand(), nodeCommand(), policyCommand(), gatewayCommand(), staticCommand(), bgpCommand()},
		"tables":  {vifCommand(), nexthopCommand(), routeCommand(), bridgeCommand(), labelCommand(), vniCommand(), serviceCommand(), flowCommand()},
		"traffic": {dropstatsCommand(), vrfstatsCommand(), fallbackstatsCommand(), traceCommand()},
	} {
		for _, c := range members {
			c.GroupID = group
			cmd.AddCommand(c)
		}
	}
	cmd.AddCommand(versionCommand(), manCommand())
	cli.Prepare(cmd, phrase.Nearest)
	completions(cmd)
	return cmd
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version of this program (`vrouter status` prints the agent's)",
		Example: "  vrouter version",
		Args:    cli.Takes(0, 0),
		Run: func(cmd *cobra.Command, _ []string) {
			fmt.Fprintln(cmd.OutOrStdout(), version, "("+revision+")")
		},
	}
}
