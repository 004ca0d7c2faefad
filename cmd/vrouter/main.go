// Command vrouter is a virtual router for overlay networks: its agent, and the
// commands that speak to it.
//
//	vrouter agent --config node.yaml           run on a compute node
//	vrouter apply -f state.yaml                give it networks, ports, routes
//	vrouter network create red --subnet …      or make them one by one
//	vrouter port add --network red --netns n1  connect a workload
//	vrouter rt list --vrf red                  see what it does
//
// See `vrouter help` for the rest.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"windtunnel/vrouter/cni"
)

// revision is set by the linker to the git revision that was built.
var revision = "unknown"

const version = "0.1.0"

// errInterrupted is why a command ends on Ctrl-C.
var errInterrupted = errors.New("interrupted")

// Exit codes.
const (
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130
)

func main() {
	if os.Getenv("CNI_COMMAND") != "" {
		cni.Main("vrouter " + version + " (" + revision + "), a CNI plugin")
		return
	}
	ctx, stop := interruptible()
	cmd, err := root().ExecuteContextC(ctx)
	stop()
	os.Exit(report(cmd, err))
}

// report tells the person what went wrong with a command, once, and returns the
// exit code.
func report(cmd *cobra.Command, err error) int {
	var failed failure
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errSilent):
		return exitFailed
	case errors.Is(err, errInterrupted):
		return exitInterrupted
	case errors.As(err, &failed):
		complain(failed.error)
		return exitFailed
	}
	complain(hinted(cmd, err))
	return exitUsage
}

// complain prints an error; one that lists several things has them under each
// other.
func complain(err error) {
	const program = "vrouter: "
	text := strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", "\n"+strings.Repeat(" ", len(program)))
	fmt.Fprintln(os.Stderr, program+text)
}

// interruptible ends the context on the first SIGINT or SIGTERM; a second one
// ends the program at once.
func interruptible() (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		<-signals
		cancel(errInterrupted)
		<-signals
		os.Exit(exitInterrupted)
	}()
	return ctx, func() { signal.Stop(signals); cancel(nil) }
}

func root() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "vrouter",
		Short: "A virtual router for overlay networks: MPLSoGRE, MPLSoUDP and VXLAN in eBPF",
		Long: `vrouter connects workloads of virtual networks over an IP underlay.

An agent runs on each compute node, keeps the kernel's forwarding tables as the
desired state says, and answers the other commands on a unix socket that root
alone may open. Packets flow without it: it may stop, crash or be upgraded.

Exit codes: 0 done, 1 failed, 2 called wrongly, 130 interrupted.`,
		Example: `  vrouter agent --config node.yaml &
  vrouter apply -f state.yaml
  vrouter port add --network red --netns n1
  vrouter trace --from web1 --to 10.0.0.4`,
		Version:       version + " (" + revision + ")",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	cmd.PersistentFlags().StringVar(&target.node, "node", "", "speak to the agent of this node (default: the only one that runs here)")
	cmd.PersistentFlags().StringVar(&target.socket, "socket", "", "speak to the agent behind this `path`")
	cmd.PersistentFlags().DurationVar(&target.timeout, "timeout", 10*time.Second, "wait at most this `time` for the agent to answer (0: without end)")
	cmd.RegisterFlagCompletionFunc("node", completeNodes)
	cmd.AddGroup(
		&cobra.Group{ID: "run", Title: "Running:"},
		&cobra.Group{ID: "state", Title: "Desired state:"},
		&cobra.Group{ID: "tables", Title: "Forwarding state:"},
		&cobra.Group{ID: "watch", Title: "Traffic and trouble:"},
	)
	for group, members := range map[string][]*cobra.Command{
		"run":    {agentCommand(), removeCommand(), statusCommand(), doctorCommand(), dockerCommand(), cniCommand()},
		"state":  {applyCommand(), stateCommand(), networkCommand(), portCommand(), nodeCommand(), policyCommand(), gatewayCommand(), staticCommand()},
		"tables": {vifCommand(), nexthopCommand(), routeCommand(), bridgeCommand(), labelCommand(), vniCommand(), flowCommand()},
		"watch":  {dropstatsCommand(), vrfstatsCommand(), topCommand(), traceCommand()},
	} {
		for _, c := range members {
			c.GroupID = group
			cmd.AddCommand(c)
		}
	}
	cmd.AddCommand(versionCommand(), manCommand())
	markFailures(cmd)
	return cmd
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "The version of this program; the agent's is in `vrouter status`",
		Example: "  vrouter version",
		Args:    cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			fmt.Fprintln(cmd.OutOrStdout(), version, "("+revision+")")
		},
	}
}
