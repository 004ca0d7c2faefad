package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"windtunnel/internal/cli"
	"windtunnel/internal/phrase"
	"windtunnel/internal/stopsignal"
	"windtunnel/vrouter/agent"
	"windtunnel/vrouter/agent/config"
	"windtunnel/vrouter/agent/follow"
	"windtunnel/vrouter/k8s"
)

func agentCommand() *cobra.Command {
	var path string
	var level slog.Level
	var from storeFlags
	var newStore bool
	var kubeconfig string
	cmd := &cobra.Command{
		Use:   "agent --config FILE",
		Short: "Run the agent of this node",
		Long: `Writes the desired state into the kernel's forwarding tables and serves the other
commands on /run/vrouter/NODE.sock. SIGINT, SIGTERM and SIGHUP stop it. Packets keep
flowing, even if the agent is killed. The next agent takes over.`,
		Example: `  vrouter agent --config node.yaml

  node.yaml must contain
      node: a
  and can set the network namespace, the underlay devices and a first state:
      netns: node-a
      fabric: [eth1]
      state: state.yaml

  vrouter agent --config node.yaml --store etcd://10.0.0.1,10.0.0.2 --tls-ca ca.pem --tls-cert node.pem --tls-key node-key.pem
  vrouter agent --config node.yaml --store embedded`,
		Args: cli.Takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := config.Load(path)
			if err != nil {
				return err
			}
			from.fill(&c)
			c.NewStore = newStore
			if os.Getenv("GOGC") == "" {
				debug.SetGCPercent(50) // less memory for more CPU time: the agent is mostly idle
			}
			runtime.MemProfileRate = 0 // nothing reads the profile, and its tables take 2 MB
			log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: level}))
			o := agent.Options{Version: version + " (" + revision + ")", Logger: log}
			if kubeconfig != "" {
				cluster, err := k8s.Connect(kubeconfig)
				if err != nil {
					return err
				}
				o.NetworkOf = k8s.NetworkOf(cluster)
			}
			err = agent.Run(cmd.Context(), c, o)
			if cmd.Context().Err() != nil && (err == nil || errors.Is(err, context.Canceled) || errors.Is(err, stopsignal.ErrInterrupted)) {
				return nil // a signal ended the agent as intended
			}
			return err
		},
	}
	configFlag(cmd, &path)
	from.add(cmd)
	cmd.Flags().BoolVar(&newStore, "new-store", false, "Begin with an empty store although the node had ports: they are removed")
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", "Let Kubernetes namespaces choose the network of their pods (annotation vrouter/network): a kubeconfig `file`, or in-cluster for the service account of this pod (default: they do not)")
	cmd.MarkFlagFilename("kubeconfig")
	cmd.Flags().TextVar(&level, "log", slog.LevelInfo, "Lowest `level` to log: debug, info, warn, error")
	cmd.RegisterFlagCompletionFunc("log", words("debug", "info", "warn", "error"))
	return cmd
}

// storeFlags override the store settings of the configuration file.
type storeFlags struct{ address, ca, cert, key string }

func (f *storeFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.address, "store", "", "Store of the desired state: file, embedded or `etcd://HOST:PORT,…` (default file)")
	flags.StringVar(&f.ca, "tls-ca", "", "File with the CA certificates of the store (default: the system's)")
	flags.StringVar(&f.cert, "tls-cert", "", "File with this node's client certificate for the store")
	flags.StringVar(&f.key, "tls-key", "", "File with the key of the client certificate")
}

func (f *storeFlags) fill(c *config.Config) {
	for _, s := range []struct {
		from string
		to   *string
	}{{f.address, &c.Store}, {f.ca, &c.StoreTLS.CA}, {f.cert, &c.StoreTLS.Cert}, {f.key, &c.StoreTLS.Key}} {
		if s.from != "" {
			*s.to = s.from
		}
	}
}

func configFlag(cmd *cobra.Command, path *string) {
	cmd.Flags().StringVarP(path, "config", "c", "", "Configuration of the node, a YAML `file`")
	cmd.MarkFlagRequired("config")
	cmd.MarkFlagFilename("config", "yaml", "yml")
}

func removeCommand() *cobra.Command {
	var path string
	var withStore bool
	cmd := &cobra.Command{
		Use:   "remove --config FILE",
		Short: "Remove the agent, programs, tables, devices and state from this node",
		Long: `Stops the node's agent, detaches its programs and deletes its tables, its ports'
devices, its sockets and its pins. Workloads lose their networks. Nothing else on
the host changes. The command deletes the node's ports from the fleet, and frees their
addresses. If the agent added the node to the fleet, it deletes the node too. If the
store does not answer, run the command again later, or run vrouter node delete NODE
--ports on another node. An embedded store is deleted too. If other nodes use that
store, --with-store is required.`,
		Example: "  vrouter remove --config node.yaml",
		Args:    cli.Takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := config.Load(path)
			if err != nil {
				return err
			}
			if os.Geteuid() != 0 {
				return fmt.Errorf("remove node %s: only root can do this; use sudo", c.Node)
			}
			done := "nothing is left of node %s\n"
			if agent.IsPresent(c) {
				done = "removed node %s\n"
			}
			timeout := target.timeout
			if !cmd.Flags().Changed("timeout") {
				timeout = agent.RemoveTimeout
			}
			if err := agent.Remove(cmd.Context(), c, withStore, timeout); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), done, c.Node)
			ports, err := follow.LeaveFleet(cmd.Context(), c)
			if err != nil {
				fmt.Fprintf(cmd.ErrOrStderr(), "vrouter: %v\n", err)
			} else if ports > 0 {
				fmt.Fprintf(cmd.OutOrStdout(), "deleted %s of the node from the fleet\n", phrase.Count(ports, "port"))
			}
			return nil
		},
	}
	configFlag(cmd, &path)
	cmd.Flags().BoolVar(&withStore, "with-store", false, "Delete the embedded store even if other nodes use it")
	return cmd
}
