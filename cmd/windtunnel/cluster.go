package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"windtunnel/internal/cli"
	"windtunnel/internal/phrase"
	"windtunnel/lab/agent"
	"windtunnel/lab/experiment"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
	"windtunnel/lab/system"
	"windtunnel/lab/testbed/k8s"
)

// k8sTestbed is the value of --testbed for a Kubernetes cluster.
const k8sTestbed = "k8s"

// afterRun is added to the longest duration of a plan to get the lifetime of its pods.
const afterRun = 15 * time.Minute

// imageFlags adds the flags of a measurement in a cluster.
func imageFlags(cmd *cobra.Command, c *sample.Cluster, nodes string) {
	cmd.Flags().StringVar(&c.Nodes, "nodes", "", "Nodes of the cluster, separated by commas (default: "+nodes+"; needs --testbed k8s)")
	cmd.Flags().StringVar(&c.Image, "image", "", "Image with the windtunnel program, such as REG/windtunnel:TAG (default: the image of make image, loaded into the nodes' container runtime; needs --testbed k8s)")
	clusterFlags(cmd, c)
}

// clusterFlags adds the flags that choose a cluster.
func clusterFlags(cmd *cobra.Command, c *sample.Cluster) {
	cmd.Flags().StringVar(&c.Kubeconfig, "kubeconfig", "", "Kubeconfig file of the cluster (default: $KUBECONFIG, ~/.kube/config; needs --testbed k8s)")
	cmd.Flags().StringVar(&c.Context, "context", "", "Context of the kubeconfig (default: its current context; needs --testbed k8s)")
}

// clusterOnly refuses the flags of a cluster if the testbed is not in a cluster.
func clusterOnly(cmd *cobra.Command, testbed string) error {
	var given []string
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if slices.Contains([]string{"image", "nodes", "kubeconfig", "context"}, f.Name) {
			given = append(given, "--"+f.Name)
		}
	})
	if len(given) == 0 || testbed == k8sTestbed {
		return nil
	}
	return fmt.Errorf("%s: only a Kubernetes cluster has these settings; add --testbed k8s, or omit them", phrase.And(given))
}

// reachCluster returns nodes of a Kubernetes cluster as the machines. It makes the run's pods.
func (o *runOptions) reachCluster(ctx context.Context, plan *suite.Plan) (*machines, error) {
	if o.cpus.cpus != "" {
		return nil, cli.Misuse(errors.New("--cpus and --testbed k8s exclude each other: pods use all CPUs that their node gives them"))
	}
	uses := func(f func(sc *suite.Scenario) bool) bool {
		return slices.ContainsFunc(plan.Scenarios, func(sc suite.Scenario) bool { return f(&sc) })
	}
	options := clusterOptions(o.cluster)
	options.Least, options.Lifetime = plan.Nodes, plan.WorstCase()+afterRun
	options.Colocated = uses(func(sc *suite.Scenario) bool { return sc.Placement == suite.Colocated })
	options.Service = uses(func(sc *suite.Scenario) bool { return sc.System == system.ServiceIP{}.Name() })
	if options.Pairs = plan.Matrix != nil; options.Pairs {
		options.Nodes = plan.Matrix.Hosts
	}
	x, removed, err := k8s.Connect(ctx, options, experiment.Programs(plan))
	if n := len(removed); n > 0 {
		fmt.Fprintf(os.Stderr, "removed %s of ended runs from the cluster\n", phrase.Count(n, "namespace"))
	}
	if err != nil {
		return nil, err
	}
	// A resumed run uses the same nodes of the same cluster.
	o.cluster.Nodes = strings.Join(x.Nodes(), ",")
	o.cluster.Kubeconfig, o.cluster.Context = x.Config()
	for i := range plan.Scenarios {
		plan.Scenarios[i].Fabric.MTU = x.MTU() // the fabric is the cluster's network
	}
	m := &machines{executor: x, self: agent.Self, choice: "all CPUs that the nodes give their pods", close: func() error { return x.Close(context.WithoutCancel(ctx)) }}
	m.facts, m.fineIdle = x.Facts()
	return m, nil
}

// clusterHosts returns the nodes of a matrix: those of --nodes, or all usable nodes.
func clusterHosts(ctx context.Context, c sample.Cluster) ([]string, error) {
	options := clusterOptions(c)
	options.Least, options.Pairs = 2, true
	nodes, left, err := k8s.Nodes(ctx, options)
	if err != nil {
		return nil, err
	}
	for _, why := range left {
		fmt.Fprintf(os.Stderr, "not in the matrix: %s\n", why)
	}
	return nodes, nil
}

func clusterOptions(c sample.Cluster) k8s.Options {
	o := k8s.Options{Kubeconfig: c.Kubeconfig, Context: c.Context, Image: cmp.Or(c.Image, "windtunnel:"+revision), NeverPull: c.Image == ""}
	if c.Nodes != "" {
		for name := range strings.SplitSeq(c.Nodes, ",") {
			o.Nodes = append(o.Nodes, strings.TrimSpace(name))
		}
	}
	return o
}

// cleanCluster removes the namespaces of ended runs from a cluster.
func cleanCluster(ctx context.Context, out io.Writer, c sample.Cluster) error {
	removed, running, err := k8s.Clean(ctx, clusterOptions(c))
	if err == nil || len(removed) > 0 {
		fmt.Fprintf(out, "removed %s of ended runs\n", phrase.Count(len(removed), "namespace"))
	}
	if len(running) > 0 {
		fmt.Fprintf(out, "runs that go on: %s\n", strings.Join(running, ", "))
	}
	return err
}

func k8sManifest() *cobra.Command {
	var user string
	cmd := &cobra.Command{
		Use:     "manifest",
		Short:   "Print the smallest role that can measure in a cluster, for kubectl apply",
		Example: "  windtunnel k8s manifest | kubectl apply -f -\n  windtunnel k8s manifest --user jane | kubectl apply -f -",
		Args:    cli.Takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := io.WriteString(cmd.OutOrStdout(), k8s.Manifest(user))
			return err
		},
	}
	cmd.Flags().StringVar(&user, "user", "", "User of the cluster who gets the role (default: a service account windtunnel in the namespace default)")
	return cmd
}
