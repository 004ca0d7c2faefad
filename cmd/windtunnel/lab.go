package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"windtunnel/internal/cli"

	"windtunnel/internal/stopsignal"
	"windtunnel/lab/delayline"
	"windtunnel/lab/experiment"
	"windtunnel/lab/probe"
	"windtunnel/lab/report/export"
	"windtunnel/lab/sample"
	"windtunnel/lab/space"
	"windtunnel/lab/suite"
	"windtunnel/lab/testbed/netns"
)

func labUp() *cobra.Command {
	var scenario string
	cmd := &cobra.Command{
		Use:   "up FILE.yaml|SUITE",
		Short: "Bring up the testbed and the system of a scenario (default: the first), and keep it running",
		Args:  cli.Takes(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			plan, err := loadPlan(args[0], suite.ExpandOptions{Scenarios: strings.Fields(scenario)})
			if err != nil {
				return err
			}
			return bringUp(cmd.Context(), cmd.OutOrStdout(), args[0], plan)
		},
	}
	cmd.Flags().StringVar(&scenario, "scenario", "", "ID of the scenario")
	return cmd
}

// bringUp brings up the first scenario of a plan. name is the suite's name or file, as the user gave it.
func bringUp(ctx context.Context, out io.Writer, name string, plan *suite.Plan) error {
	if plan.Scenarios[0].Endpoint.Kind == suite.VM {
		return fmt.Errorf("scenario %s has VMs, which end with the program that started them: choose a scenario with containers by --scenario", plan.Scenarios[0].ID)
	}
	lock, err := takeLock()
	if err != nil {
		return err
	}
	defer lock.Unlock()
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the windtunnel program: %w", err)
	}
	if running, err := space.Named(space.TestbedPrefix(space.LabID(plan.Suite))); err != nil || len(running) > 0 {
		return cmp.Or(err, fmt.Errorf("bring up the testbed of %s: it is running already; `windtunnel lab down %s` removes it", name, name))
	}
	x := executorHere(probe.Probe())
	x.Agent, x.Line = []string{self, "agent"}, []string{self, delayline.Command}
	sc := &plan.Scenarios[0]
	b, err := experiment.NewBench(ctx, x, space.LabID(plan.Suite), sc, plan.Nodes)
	if err != nil {
		return err
	}
	if err := b.ProveAll(ctx); err != nil {
		return errors.Join(err, b.Down(context.WithoutCancel(ctx)))
	}
	fmt.Fprintf(out, "%s: %s\n%s\n", sc.ID, sc.Title, b.Testbed.Fabric().Describe())
	for _, p := range b.Pairs {
		for _, e := range []experiment.Endpoint{p.Sender, p.Receiver} {
			fmt.Fprintf(out, "  %-6s %s  %s  CPUs %v\n", e, e.V4, e.V6, e.Node.CPUs())
		}
	}
	fmt.Fprintf(out, "run a command there:  windtunnel lab exec %s %s -- ping -c 1 %s\n", name, b.Pairs[0].Sender, b.Pairs[0].Receiver.V4)
	return b.Testbed.Release(ctx)
}

func labList() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "list [FILE.yaml|SUITE]",
		Short: "List the namespaces of the running testbeds",
		Args:  cli.Takes(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			prefix := space.LabPrefix
			if len(args) == 1 {
				id, err := labID(args[0])
				if err != nil {
					return err
				}
				prefix = space.TestbedPrefix(id)
			}
			names, err := space.Named(prefix)
			if err != nil {
				return err
			}
			if len(names) == 0 {
				fmt.Fprintln(cmd.ErrOrStderr(), "no testbed is running; `windtunnel lab up SUITE` starts one")
			}
			if format == "json" {
				return export.JSON(cmd.OutOrStdout(), orEmpty(names))
			}
			for _, n := range names {
				fmt.Fprintln(cmd.OutOrStdout(), n)
			}
			return nil
		},
	}
	listFormat(cmd, &format)
	return cmd
}

// labID returns the ID of a suite's testbed.
func labID(name string) (string, error) {
	plan, err := loadPlan(name, suite.ExpandOptions{})
	if err != nil {
		return "", err
	}
	return space.LabID(plan.Suite), nil
}

func labExec() *cobra.Command {
	return &cobra.Command{
		Use:     "exec FILE.yaml|SUITE NODE[/CONTAINER] -- COMMAND…",
		Short:   "Run a command on a node or in a container of a running testbed",
		Example: "  windtunnel lab exec quick a/c1 -- ping -c 3 10.31.16.2",
		Args:    cli.Takes(3, math.MaxInt),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := labID(args[0])
			if err != nil {
				return err
			}
			c := exec.Command(args[2], args[3:]...)
			c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
			// The command decides what a signal does, also a second one.
			signals := make(chan os.Signal, 8)
			signal.Reset(stopsignal.List()...)
			signal.Notify(signals, stopsignal.List()...)
			err = netns.Exec(id, args[1], probe.Probe().UsableCPUs(), c, signals)
			var exit *exec.ExitError
			if !errors.As(err, &exit) {
				return err
			}
			if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
				return exitCode(128 + int(status.Signal())) // as a shell reports it
			}
			return exitCode(exit.ExitCode())
		},
	}
}

func labDown() *cobra.Command {
	return &cobra.Command{
		Use:   "down FILE.yaml|SUITE",
		Short: "Remove a running testbed",
		Args:  cli.Takes(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := labID(args[0])
			if err != nil {
				return err
			}
			return clean(cmd.OutOrStdout(), space.TestbedPrefix(id))
		},
	}
}

func labClean() *cobra.Command {
	var hosts string
	var cluster sample.Cluster
	cmd := &cobra.Command{
		Use:   "clean",
		Short: "Remove all namespaces and processes of killed runs and running testbeds",
		Args:  cli.Takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := clusterOnly(cmd, hosts); err != nil {
				return err
			}
			if hosts == k8sTestbed {
				return cleanCluster(cmd.Context(), cmd.OutOrStdout(), cluster)
			}
			if hosts != "" {
				return cleanHosts(cmd.Context(), cmd.OutOrStdout(), hosts)
			}
			return clean(cmd.OutOrStdout(), space.NamePrefix)
		},
	}
	cmd.Flags().StringVar(&hosts, "testbed", "", "Hosts file: clean these hosts and remove the windtunnel program from them, and not from this machine; k8s: remove the namespaces of ended runs from a Kubernetes cluster")
	clusterFlags(cmd, &cluster)
	return cmd
}

// clean removes the lab's namespaces and processes. It holds the lab's lock meanwhile,
// so that it never removes the testbed of a run in progress.
func clean(out io.Writer, prefix string) error {
	lock, err := takeLock()
	var held *space.HeldError
	if errors.As(err, &held) {
		return fmt.Errorf("remove namespaces and processes: a measurement may use them (%s); wait for its end, or end it", held.Holder)
	}
	if err != nil {
		return err
	}
	defer lock.Unlock()
	c, err := space.Clean(prefix)
	fmt.Fprintf(out, "removed %d network namespaces, ended %d processes\n", len(c.Namespaces), len(c.Processes))
	return err
}

// takeLock takes the lab's lock, so that no other measurement runs on this machine.
func takeLock() (*space.Lock, error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("making and removing network namespaces needs root: use sudo")
	}
	return space.TakeLock(space.LockPath)
}
