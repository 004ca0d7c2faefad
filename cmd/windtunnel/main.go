// Command windtunnel measures what a virtual network costs, and where.
//
//	windtunnel run quick          measure, print a table, write a report
//	windtunnel doctor             show which tools, systems and suites can run here
//	windtunnel suites             list the suites
//
// See `windtunnel help` for the rest.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"unsafe"

	"github.com/spf13/cobra"

	"windtunnel/internal/cli"
	"windtunnel/internal/stopsignal"
	"windtunnel/lab/results"
	"windtunnel/lab/suite"
)

// revision is set by the linker to the git revision that was built.
var revision = "unknown"

const version = "0.1.0"

func main() {
	os.Args = append(os.Args[:1], hidePasswords(os.Args[1:])...)
	if hidden(os.Args[1:]) {
		return
	}
	ctx, stop := stopsignal.Context()
	_, err := cli.Execute(ctx, root())
	interrupted := errors.Is(err, stopsignal.ErrInterrupted) || err != nil && errors.Is(context.Cause(ctx), stopsignal.ErrInterrupted)
	stop()
	var code exitCode
	switch {
	case errors.As(err, &code):
		os.Exit(int(code))
	case interrupted:
		fmt.Fprintln(os.Stderr, "windtunnel:", err)
		os.Exit(stopsignal.ExitCode)
	case err != nil:
		fmt.Fprintln(os.Stderr, "windtunnel:", err)
		os.Exit(cli.ExitCode(err))
	}
}

// exitCode ends the program with a code and no further message.
type exitCode int

// exitNothing: a run ended and none of its trials counts.
const exitNothing exitCode = 3

func (c exitCode) Error() string { return fmt.Sprintf("exit status %d", int(c)) }

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version, as --version does",
		Args:  cli.Takes(0, 0),
		Run: func(cmd *cobra.Command, _ []string) {
			fmt.Fprintln(cmd.OutOrStdout(), "windtunnel version", cmd.Root().Version)
		},
	}
}

func root() *cobra.Command {
	cmd := &cobra.Command{
		Use:           "windtunnel",
		Short:         "Measure what a virtual network costs, and where the cost arises",
		Version:       version + " (" + revision + ")",
		SilenceUsage:  true,
		SilenceErrors: true,

		PersistentPreRunE: useVariables,
	}
	cmd.AddCommand(versionCommand(), runCommand(), matrixCommand(), suitesCommand(), runsCommand(), outputCommand(), reportCommand(), explainCommand(), compareCommand(), trendCommand(), serveCommand(), profileCommand(), doctorCommand(), ntttcpCommand(), schemaCommand(), manCommand(),
		foundCommand("tools", "List the traffic tools, and which can run here", (*diagnosis).tools),
		foundCommand("systems", "List the systems under test, and which can run here", (*diagnosis).systems),
		group("lab", "Bring up a testbed to try things by hand; clean up after killed runs", labUp(), labList(), labExec(), labDown(), labClean()),
		group("vm", "Get the kernel and build the file system that VMs boot", vmFetch(), vmBuild()),
		group("k8s", "Print what a Kubernetes cluster needs for measurements", k8sManifest()))
	cli.Prepare(cmd, suite.Nearest)
	completions(cmd)
	return cmd
}

func group(use, short string, below ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short}
	cmd.AddCommand(below...)
	return cmd
}

// hidePasswords overwrites the passwords of URLs in the command line of this process, which
// every user of the machine can read with ps, and returns the arguments as they were. args
// must be elements of os.Args: the Go runtime keeps them in the memory that ps shows.
func hidePasswords(args []string) []string {
	given := make([]string, len(args))
	for i, arg := range args {
		given[i] = strings.Clone(arg)
		if hidden := results.HidePassword(given[i]); hidden != given[i] {
			copy(unsafe.Slice(unsafe.StringData(arg), len(arg)), hidden)
		}
	}
	return given
}
