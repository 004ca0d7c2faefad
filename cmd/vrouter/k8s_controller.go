package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"windtunnel/internal/cli"
	"windtunnel/vrouter/fleet"
	"windtunnel/vrouter/k8s"
	"windtunnel/vrouter/store"
)

func k8sControllerCommand() *cobra.Command {
	var from storeFlags
	var kubeconfig string
	cmd := &cobra.Command{
		Use:   "controller --store etcd://HOST:PORT",
		Short: "Delete nodes and ports that Kubernetes no longer has",
		Long: `Follows the nodes and pods of the cluster. When the Node object of a node was deleted
and its agent has ended, it deletes the node as vrouter node delete --ports does. At the
start and every minute, it deletes the ports of pods that no longer exist. It never
deletes other nodes and ports. On nodes with a pod of the DaemonSet vrouter/vrouter-node,
it writes the condition NetworkUnavailable.

Several controllers can run; one of them works. The store must let the controller write
all objects (vrouter store grant operator). In the cluster, its service account must be
able to get, list and watch nodes and pods, and to patch nodes/status.`,
		Example: `  vrouter k8s controller --store etcd://10.0.0.1 --tls-ca ca.pem --tls-cert operator.pem --tls-key operator-key.pem
  vrouter k8s controller --store etcd://10.0.0.1 --kubeconfig ~/.kube/config`,
		Args: cli.Takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, err := store.ParseAddress(from.address)
			if err == nil && a.Kind != store.KindEtcd {
				err = fmt.Errorf("a controller needs the store of a fleet: give --store etcd://HOST:PORT")
			}
			if err != nil {
				return cli.Misuse(err)
			}
			return control(cmd.Context(), a, store.TLS{CA: from.ca, Cert: from.cert, Key: from.key}, kubeconfig, slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil)))
		},
	}
	from.add(cmd)
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", k8s.InCluster, "Kubeconfig `file`, or in-cluster: the service account of this pod")
	cmd.MarkFlagFilename("kubeconfig")
	return cmd
}

// control runs a controller until ctx ends.
func control(ctx context.Context, a store.Address, files store.TLS, kubeconfig string, log *slog.Logger) error {
	config, err := k8s.ConfigOf(kubeconfig)
	if err != nil {
		return err
	}
	s, err := store.OpenEtcd(a, files, nil)
	if err != nil {
		return err
	}
	defer s.Close()
	host, _ := os.Hostname()
	f := fleet.New(s, fleet.Options{Logger: log})
	controller := &k8s.Controller{Config: config, Fleet: f, Log: log, Name: cmp.Or(host, "controller")}
	following, end := context.WithCancel(context.WithoutCancel(ctx)) // goes on after ctx ends: the leader then deletes its key in the store
	ended := make(chan error, 1)
	working, stop := context.WithCancel(ctx)
	defer stop()
	go func() { ended <- f.Run(following); stop() }()
	err = controller.Run(working)
	end()
	if failed := <-ended; failed != nil {
		err = failed
	}
	return err
}
