package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"windtunnel/internal/cli"

	"windtunnel/internal/manual"
)

func manCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "man FOLDER",
		Short: "Write manual pages for all commands",
		Args:  cli.Takes(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return manual.Write(cmd, version, args[0], manualSections()...)
		},
	}
}

// manualSections returns the sections that all manual pages have.
func manualSections() []manual.Section {
	var environment []manual.Entry
	for _, flag := range sortedKeys(variables) {
		environment = append(environment, manual.Entry{Name: variables[flag], Text: fmt.Sprintf("Default of --%s.", flag)})
	}
	return []manual.Section{
		manual.ExitStatus(
			manual.Entry{Name: "1", Text: "Of compare: a gate failed."},
			manual.Entry{Name: "3", Text: "No trial of a run counts, no scenario can run here, or compare could not judge the runs."},
			manual.Entry{Name: "others", Text: "lab exec ends with the status of its command."},
		),
		{Title: "ENVIRONMENT", Entries: append(environment, []manual.Entry{
			{Name: "XDG_DATA_HOME", Text: "Directory of the results."},
			{Name: "XDG_CACHE_HOME", Text: "Directory of the kernel and images of VMs."},
			{Name: "NO_COLOR, TERM=dumb", Text: "Print no colours."},
			{Name: "CI, TERM=dumb", Text: "Print progress in lines, without a live line."},
			{Name: "KUBECONFIG", Text: "Default of --kubeconfig."},
			{Name: "SSH_AUTH_SOCK", Text: "Socket of the SSH agent that has the keys for a hosts file."},
		}...)},
		{Title: "FILES", Entries: []manual.Entry{
			{Name: "~/.local/share/windtunnel/windtunnel.db", Text: "Results, unless --db or XDG_DATA_HOME is set."},
			{Name: "~/.cache/windtunnel/vm", Text: "Kernel and images of VMs, unless XDG_CACHE_HOME is set."},
			{Name: "out/RUN", Text: "Report of a run, unless --out is set."},
			{Name: "/run/windtunnel.lock", Text: "Lock that only one measurement holds."},
			{Name: "/run/windtunnel", Text: "Sockets, logs and data of the daemons and VMs of the nodes."},
			{Name: "/run/windtunnel.kvm", Text: "Result of the test for KVM, made once after each boot."},
		}},
	}
}
