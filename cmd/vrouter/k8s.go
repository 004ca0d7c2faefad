package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"

	"github.com/spf13/cobra"

	"windtunnel/internal/cli"
	"windtunnel/vrouter/agent"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/cni"
	"windtunnel/vrouter/k8s"
	"windtunnel/vrouter/store"
)

func k8sCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "k8s",
		Short: "Install vrouter as the network of a Kubernetes cluster",
		Long: `Prints the objects that install vrouter in a cluster: agents on all nodes, the CNI
plugin, one network for all pods, and a store. kubectl applies and deletes them.`,
		Example: `  vrouter k8s manifest | kubectl apply -f -
  vrouter k8s check
  vrouter k8s manifest | kubectl delete -f -`,
	}
	cmd.AddCommand(k8sManifestCommand(), k8sControllerCommand(), k8sCheckCommand(), k8sProbeCommand(), k8sNodeCommand(), k8sStoreCommand(), k8sReadyCommand())
	return cmd
}

func k8sManifestCommand() *cobra.Command {
	var access storeFlags
	m := k8s.Manifest{}
	cmd := &cobra.Command{
		Use:   "manifest",
		Short: "Print the objects that install vrouter, as YAML",
		Long: `Prints the same objects each time, so kubectl apply also upgrades and changes an
installation. kubectl delete removes everything, also from the nodes. Pods that run then
lose their network.`,
		Example: `  vrouter k8s manifest | kubectl apply -f -
  vrouter k8s manifest --image REG/vrouter:TAG --subnet 10.244.0.0/16 | kubectl apply -f -
  vrouter k8s manifest --store etcd://10.0.0.1 --tls-ca ca.pem --tls-cert node.pem --tls-key node-key.pem`,
		Args: cli.Takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(m.Subnets) == 0 {
				m.Subnets = []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16")}
			}
			m.Store = access.address
			m.Access = map[string][]byte{}
			for name, path := range map[string]string{"ca.pem": access.ca, "node.pem": access.cert, "node-key.pem": access.key} {
				if path == "" {
					continue
				}
				text, err := os.ReadFile(path)
				if err != nil {
					return fmt.Errorf("read the access to the store: %w", err)
				}
				m.Access[name] = text
			}
			text, err := m.YAML()
			if err == nil {
				_, err = io.WriteString(cmd.OutOrStdout(), text)
			}
			return err
		},
	}
	flags := cmd.Flags()
	imageFlag(cmd, &m.Image)
	podNetworkFlags(cmd, &m.Network, &m.Subnets)
	encapsulationFlag(cmd, &m.Encapsulations)
	flags.StringVar(&m.StoreNode, "store-node", "", "Name of the node that runs the store (default: a node with the label node-role.kubernetes.io/control-plane)")
	flags.StringVar(&m.APIServer, "api-server", "", "`HOST:PORT` at which the installation reaches the API server (default: the ClusterIP of the service kubernetes, which needs kube-proxy)")
	flags.BoolVar(&m.KubeProxyReplacement, "kube-proxy-replacement", false, "Replace kube-proxy, which must not run (needs --api-server)")
	flags.StringVar(&access.address, "store", "", "Use an etcd at `etcd://HOST:PORT,…` in place of a store in the cluster")
	flags.StringVar(&access.ca, "tls-ca", "", "File with the CA certificates of --store")
	flags.StringVar(&access.cert, "tls-cert", "", "File with the nodes' client certificate for --store")
	flags.StringVar(&access.key, "tls-key", "", "File with the key of the client certificate")
	return cmd
}

func imageFlag(cmd *cobra.Command, image *string) {
	cmd.Flags().StringVar(image, "image", "vrouter:"+revision, "Image with this program, such as REG/vrouter:TAG; the default is that of make image, loaded into the nodes' container runtime")
}

// podNetworkFlags adds the flags of the network of all pods.
func podNetworkFlags(cmd *cobra.Command, name *string, subnets *[]netip.Prefix) {
	cmd.Flags().StringVar(name, "network", "pods", "Name of the network of all pods")
	listFlag(cmd, subnets, parsePrefix, "subnet", "Subnet of the network, a `prefix` that holds the podCIDRs of all nodes (repeatable; default 10.244.0.0/16)")
}

// k8sNodeCommand is what the pods of the DaemonSet run.
func k8sNodeCommand() *cobra.Command {
	var o k8s.Node
	cmd := &cobra.Command{
		Use:    "node",
		Short:  "Run the agent of a node, and install the CNI plugin (in a pod)",
		Args:   cli.Takes(0, 0),
		Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Namespace = k8s.Namespace
			o.Options = agent.Options{Version: version + " (" + revision + ")", Logger: logTo(cmd)}
			return o.Run(cmd.Context())
		},
	}
	podNetworkFlags(cmd, &o.Network.Name, &o.Network.Subnets)
	configFlag(cmd, &o.Base)
	cmd.Flags().StringVar(&o.Name, "node-name", "", "Name of the node")
	cmd.Flags().BoolVar(&o.NoKubeProxy, "kube-proxy-replacement", false, "Replace kube-proxy")
	cmd.Flags().StringVar(&o.Binaries, "bin-dir", cni.DefaultBinaries, "Directory of CNI plugins")
	cmd.Flags().StringVar(&o.Configs, "conf-dir", cni.DefaultConfigs, "Directory of CNI configurations")
	return cmd
}

// k8sReadyCommand is the readiness probe of a node's pod.
func k8sReadyCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "ready",
		Short:  "Fail unless pods can start on the node (in a pod)",
		Args:   cli.Takes(0, 0),
		Hidden: true,
		RunE: withAgent(func(ctx context.Context, _ *cobra.Command, c *api.Client, _ []string) error {
			_, err := c.Status(ctx)
			if err == nil {
				_, err = os.Stat(k8s.ConflistPath(cni.DefaultConfigs))
			}
			return err
		}),
	}
}

// k8sStoreCommand is what the store's pod runs.
func k8sStoreCommand() *cobra.Command {
	s := k8s.Store{Namespace: k8s.Namespace}
	cmd := &cobra.Command{
		Use:    "store",
		Short:  "Run the store of a cluster (in a pod)",
		Args:   cli.Takes(0, 0),
		Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s.Log = logTo(cmd)
			s.Administer = func(address string, admin store.TLS, body func(context.Context, k8s.Roles) error) error {
				access := &storeFlags{address, admin.CA, admin.Cert, admin.Key}
				return withRoles(access, func(ctx context.Context, r *roles, _ []string) error { return body(ctx, r) })(cmd, nil)
			}
			return s.Run(cmd.Context())
		},
	}
	podNetworkFlags(cmd, &s.Network.Name, &s.Network.Subnets)
	configFlag(cmd, &s.Base)
	cmd.Flags().StringVar(&s.Host, "listen", "", "`IP` address to serve, at port 2479")
	cmd.Flags().StringVar(&s.Node, "node-name", "", "Name of the node")
	cmd.Flags().StringVar(&s.Dir, "dir", k8s.StoreDir, "Directory of the data")
	return cmd
}

func logTo(cmd *cobra.Command) *slog.Logger {
	return slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
}
