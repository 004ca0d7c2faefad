package main

import (
	"github.com/spf13/cobra"

	"windtunnel/internal/cli"
	"windtunnel/vrouter/k8s"
)

func k8sCheckCommand() *cobra.Command {
	var c k8s.Check
	var kubeconfig, context string
	var output format
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Test the network of the cluster from pods on two nodes",
		Long: `Starts a pod on each of two nodes. Each connects to both pods, their services, the API
server, the nodes, the cluster's DNS, and an address outside. The command needs kubectl, and
works with every CNI plugin. It deletes its namespace at the end. The exit code is 1 if a
connection fails.`,
		Example: "  vrouter k8s check\n  vrouter k8s check --nodes a,b --outside 192.0.2.1:443",
		Args:    cli.Takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c.Kubectl = []string{"kubectl"}
			if kubeconfig != "" {
				c.Kubectl = append(c.Kubectl, "--kubeconfig", kubeconfig)
			}
			if context != "" {
				c.Kubectl = append(c.Kubectl, "--context", context)
			}
			findings, err := c.Run(cmd.Context())
			if err != nil {
				return err
			}
			return printFindings(cmd.OutOrStdout(), findings, output)
		},
	}
	imageFlag(cmd, &c.Image)
	flags := cmd.Flags()
	flags.StringSliceVar(&c.Nodes, "nodes", nil, "Names of two nodes, separated by commas (default: the first two that are ready)")
	flags.StringVar(&c.Outside, "outside", "1.1.1.1:443", "Address outside the cluster that accepts TCP connections, `HOST:PORT`; empty: none")
	flags.StringVar(&kubeconfig, "kubeconfig", "", "Kubeconfig `file` (default: that of kubectl)")
	flags.StringVar(&context, "context", "", "Context in the kubeconfig (default: the current one)")
	outputFlag(cmd, &output)
	return cmd
}

// k8sProbeCommand is what the pods of `vrouter k8s check` run.
func k8sProbeCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "probe [TARGET…]",
		Short:  "Answer connections, or connect to targets (in a pod)",
		Hidden: true,
		RunE: func(cmd *cobra.Command, targets []string) error {
			if len(targets) == 0 {
				return k8s.ServeProbes(cmd.Context())
			}
			return k8s.Probe(cmd.Context(), cmd.OutOrStdout(), targets)
		},
	}
}
