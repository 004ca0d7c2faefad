package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"windtunnel/internal/cli"
	"windtunnel/internal/manual"
)

// errSilent ends a command with exit code 1 and prints nothing: the command has
// already printed the problem.
var errSilent = errors.New("see above")

// withHelpHint adds the command that prints the help to an error that does not name it.
func withHelpHint(cmd *cobra.Command, err error) error {
	if strings.Contains(err.Error(), "--help`") {
		return err
	}
	return fmt.Errorf("%w; see `%s --help`", err, cmd.CommandPath())
}

func manCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "man FOLDER",
		Short:   "Write manual pages for all commands",
		Example: "  vrouter man /usr/local/share/man/man1",
		Args:    cli.Takes(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return manual.Write(cmd, version, args[0], manualSections...)
		},
	}
}

// manualSections are the sections that all manual pages have.
var manualSections = []manual.Section{
	manual.ExitStatus(),
	{Title: "ENVIRONMENT", Entries: []manual.Entry{
		{Name: "NO_COLOR, TERM=dumb", Text: "Print no colours."},
		{Name: "CNI_COMMAND", Text: "Set by a container runtime: vrouter is then a CNI plugin."},
	}},
	{Title: "FILES", Entries: []manual.Entry{
		{Name: "/etc/vrouter/node.yaml", Text: "Configuration of the agent."},
		{Name: "/run/vrouter/NODE.sock", Text: "Socket of the agent's API."},
		{Name: "/run/vrouter/NODE.lock", Text: "Lock that the node's only agent holds."},
		{Name: "/run/vrouter/NODE/bpf", Text: "Pinned eBPF programs and maps, in the mount namespace of process 1."},
		{Name: "/var/lib/vrouter/NODE", Text: "Desired state and numbers that outlast the agent."},
	}},
}
