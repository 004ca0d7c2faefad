package main

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"windtunnel/vrouter/cni"
)

func cniCommand() *cobra.Command {
	cmd := group(&cobra.Command{
		Use:     "cni",
		Short:   "vrouter as a CNI plugin",
		Example: "  vrouter cni install --network red",
		Long: `Container runtimes that speak CNI (Kubernetes, containerd, CRI-O, Podman) start
this program with the environment variable CNI_COMMAND; it then asks the node's
agent for a port. This command puts it where they look.`,
	})
	cmd.AddCommand(cniInstallCommand())
	return cmd
}

func cniInstallCommand() *cobra.Command {
	var o cni.InstallOptions
	cmd := &cobra.Command{
		Use:     "install --network NETWORK",
		Short:   "Write the plugin and a configuration list",
		Example: "  vrouter cni install --network red\n  vrouter cni install --network red --name pods --chain portmap,tuning",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if target.socket != "" {
				path, err := filepath.Abs(target.socket) // a runtime starts the plugin elsewhere
				if err != nil {
					return fmt.Errorf("--socket %s: %w", target.socket, err)
				}
				o.Socket = path
			}
			written, err := cni.Install(o)
			for _, path := range written {
				fmt.Fprintln(cmd.OutOrStdout(), "wrote", path)
			}
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.Network, "network", "", "`name` of the virtual network")
	flags.StringVar(&o.Name, "name", "", "`name` of the configuration (default the network's)")
	flags.StringVar(&o.Binaries, "bin-dir", "/opt/cni/bin", "`folder` of plugins")
	flags.StringVar(&o.Configs, "conf-dir", "/etc/cni/net.d", "`folder` of configurations")
	flags.StringSliceVar(&o.Chain, "chain", nil, "plugins that come after, such as portmap")
	flags.StringVar(&o.Node, "node", "", "`name` of the node, where several have agents here")
	cmd.MarkFlagRequired("network")
	cmd.RegisterFlagCompletionFunc("network", completeNetworks)
	return cmd
}
