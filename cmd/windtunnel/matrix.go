package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"windtunnel/internal/cli"
	"windtunnel/internal/phrase"
	"windtunnel/lab/condition"
	"windtunnel/lab/suite"
	"windtunnel/lab/testbed/ssh"
)

// matrixOptions are the flags of `windtunnel matrix` about the pairs of hosts.
type matrixOptions struct {
	pairs    string // "" for a run without a matrix
	parallel int
}

func matrixCommand() *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:   "matrix SUITE|FILE.yaml --testbed hosts.yaml|k8s",
		Short: "Run a suite between every pair of hosts, and name the slow and the asymmetric pairs",
		Long: `Run a suite between every pair of hosts, and name the slow and the asymmetric pairs.

The hosts are those of a hosts file, or the nodes of a Kubernetes cluster. Each
scenario runs in both directions between them: a block has every scenario once
between every pair, in random order. No host is in two trials
at once. --parallel N lets up to N trials run at the same time between different
hosts. The default is 1, because trials on one fabric can disturb each other.

A pair is slow if its figure is certainly below the upper quartile of all pairs by
more than 10 %. It is asymmetric if one direction is certainly below the other by
more than 10 %. This needs 6 trials or more. The samples are in an ordinary run:
every command for runs works with it.`,
		Example: `  windtunnel matrix quick --testbed hosts.yaml --scenario raw/stream --dry-run
  windtunnel matrix quick --testbed hosts.yaml --scenario raw/stream
  windtunnel matrix quick --testbed hosts.yaml --pairs ring --parallel 4
  windtunnel matrix quick --testbed hosts.yaml --pairs a:b,b:a,a:c
  windtunnel matrix k8s-cni --testbed k8s --scenario host/stream,cni/stream
  windtunnel matrix --resume latest`,
		Args: cli.Takes(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.command = recorded(cmd, args)
			if err := cli.Misuse(cmp.Or(resumable(cmd), clusterOnly(cmd, o.testbed), aboveZero(cmd, "trials", "duration", "parallel"), nonEmptyLists(cmd))); err != nil {
				return err
			}
			switch {
			case o.resume != "":
				o.matrix = matrixOptions{} // the plan has the pairs
			case o.testbed == "":
				return cli.Misuse(errors.New("a matrix needs hosts: give a hosts file with --testbed (docs/hosts.md), or --testbed k8s (docs/kubernetes.md)"))
			case len(args) == 0:
				return cli.Misuse(errors.New("no matrix is named: name a suite or a suite's file (`windtunnel suites` lists the suites), or give --resume"))
			case o.matrix.pairs == "":
				return cli.Misuse(errors.New("--pairs is empty; write all, ring, or pairs such as a:b,b:a"))
			}
			o.cpus.distance = string(condition.Off)
			return o.run(cmd.Context(), cmd.OutOrStdout(), args)
		},
	}
	f := cmd.Flags()
	o.choices(cmd)
	f.Var((*nonEmpty)(&o.testbed), "testbed", "Hosts file (docs/hosts.md); k8s: the nodes of a Kubernetes cluster (docs/kubernetes.md)")
	imageFlags(cmd, &o.cluster, "all usable ones")
	f.StringVar(&o.matrix.pairs, "pairs", "all", "Pairs of hosts: all, ring (each host to the next one), or a list such as a:b,b:a")
	f.IntVar(&o.matrix.parallel, "parallel", 1, "Maximum number of trials at the same time, between different hosts; a number above half of the hosts counts as half of them; trials on one fabric can disturb each other")
	f.IntVar(&o.trials, "trials", 0, "Trials of each scenario between each pair")
	f.BoolVar(&o.dryRun, "dry-run", false, "Print the plan and its duration, and measure nothing")
	f.Var((*nonEmpty)(&o.resume), "resume", "Resume an interrupted or killed run by its ID, with its plan and gates (--gates sets other gates for the remaining trials)")
	return cmd
}

// addMatrix adds the matrix to a plan. A run between pairs has a fixed number of trials.
func (o *runOptions) addMatrix(ctx context.Context, plan *suite.Plan) error {
	if plan.Nodes != 2 {
		return fmt.Errorf("suite %s has %s, and a matrix measures between two; choose another suite", plan.Suite, phrase.Count(plan.Nodes, "node"))
	}
	hosts, err := o.hostNames(ctx)
	if err != nil {
		return err
	}
	if plan.Matrix, err = suite.NewMatrix(hosts, o.matrix.pairs, o.matrix.parallel); err != nil {
		return cli.Misuse(fmt.Errorf("--pairs %s --parallel %d: %w", o.matrix.pairs, o.matrix.parallel, err))
	}
	plan.Stop = suite.Stop{}
	return nil
}

// hostNames returns the names of the testbed's hosts.
func (o *runOptions) hostNames(ctx context.Context) ([]string, error) {
	if o.testbed == k8sTestbed {
		return clusterHosts(ctx, o.cluster)
	}
	hosts, err := ssh.ReadHosts(o.testbed)
	if err != nil {
		return nil, err
	}
	return hosts.Names(), nil
}
