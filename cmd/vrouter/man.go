package main

import (
	"github.com/spf13/cobra"

	"windtunnel/internal/manual"
)

func manCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "man FOLDER",
		Short:   "Write manual pages for all commands",
		Example: "  vrouter man /usr/local/share/man/man1",
		Args:    cobra.ExactArgs(1),
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
