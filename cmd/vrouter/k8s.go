package main

import "github.com/spf13/cobra"

func k8sCommand() *cobra.Command {
	cmd := group(&cobra.Command{
		Use:     "k8s",
		Short:   "Run vrouter as the network of a Kubernetes cluster",
		Example: "  vrouter k8s controller --store etcd://10.0.0.1",
	})
	cmd.AddCommand(k8sControllerCommand())
	return cmd
}
