package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"windtunnel/internal/manual"
)

// errSilent ends a command with exit code 1 and prints nothing: the command has
// already printed the problem.
var errSilent = errors.New("see above")

// withHelpHint adds the command that prints the help.
func withHelpHint(cmd *cobra.Command, err error) error {
	text, gap := strings.TrimSpace(err.Error()), "; "
	if strings.Contains(text, "\n") {
		gap = "\n"
	}
	return fmt.Errorf("%s%ssee `%s --help`", text, gap, cmd.CommandPath())
}

// group makes a command that only has subcommands. Without a subcommand, or with
// an unknown one, it is a usage error.
func group(cmd *cobra.Command) *cobra.Command {
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return fmt.Errorf("%s needs a subcommand", cmd.Name())
		}
		return fmt.Errorf("unknown command %q for %q", args[0], cmd.CommandPath())
	}
	cmd.RunE = func(*cobra.Command, []string) error { return nil }
	return cmd
}

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
