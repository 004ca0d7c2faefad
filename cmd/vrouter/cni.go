package main

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"windtunnel/internal/cli"
	"windtunnel/vrouter/cni"
)

func cniCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "cni",
		Short:   "Install vrouter as a CNI plugin, or uninstall it",
		Example: "  vrouter cni install --network red",
		Long: `Container runtimes with CNI (Kubernetes, containerd, CRI-O, Podman) start this
program with the environment variable CNI_COMMAND. It then asks the agent of the
node for a port.`,
	}
	cmd.AddCommand(cniInstallCommand(), cniUninstallCommand())
	return cmd
}

func cniInstallCommand() *cobra.Command {
	var o cni.InstallOptions
	cmd := &cobra.Command{
		Use:     "install --network NETWORK",
		Short:   "Install the plugin and write a configuration list",
		Example: "  vrouter cni install --network red\n  vrouter cni install --network red --name pods --chain portmap,tuning",
		Args:    cli.Takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if target.socket != "" {
				path, err := filepath.Abs(target.socket) // a runtime starts the plugin in another directory
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
	cniFlags(cmd, &o)
	flags := cmd.Flags()
	flags.StringSliceVar(&o.Chain, "chain", nil, "Plugin to run after vrouter, such as portmap (repeatable)")
	flags.StringVar(&o.Node, "node", "", "Name of the node, if several agents run on this host")
	return cmd
}

func cniUninstallCommand() *cobra.Command {
	var o cni.InstallOptions
	cmd := &cobra.Command{
		Use:   "uninstall --network NETWORK",
		Short: "Delete the configuration list, and the plugin if no other configuration uses it",
		Long: `Deletes what "vrouter cni install" wrote with the same flags. The ports of running
containers stay: stop the containers first.`,
		Example: "  vrouter cni uninstall --network red",
		Args:    cli.Takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			removed, err := cni.Uninstall(o)
			for _, path := range removed {
				fmt.Fprintln(cmd.OutOrStdout(), "deleted", path)
			}
			if err == nil && len(removed) == 0 {
				fmt.Fprintln(cmd.OutOrStdout(), "nothing is left to delete")
			}
			return err
		},
	}
	cniFlags(cmd, &o)
	return cmd
}

// cniFlags adds the flags that select the files.
func cniFlags(cmd *cobra.Command, o *cni.InstallOptions) {
	flags := cmd.Flags()
	flags.StringVar(&o.Network, "network", "", "Name of the virtual network")
	flags.StringVar(&o.Name, "name", "", "Name of the configuration (default: the network's)")
	flags.StringVar(&o.Binaries, "bin-dir", cni.DefaultBinaries, "Directory of CNI plugins")
	flags.StringVar(&o.Configs, "conf-dir", cni.DefaultConfigs, "Directory of CNI configurations")
	cmd.MarkFlagRequired("network")
	cmd.RegisterFlagCompletionFunc("network", completeNetworks)
}
