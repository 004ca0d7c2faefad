package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"

	"github.com/spf13/cobra"

	"windtunnel/vrouter/agent"
)

func agentCommand() *cobra.Command {
	var config string
	var level slog.Level
	var from storeFlags
	cmd := &cobra.Command{
		Use:   "agent --config FILE",
		Short: "Run this node's agent",
		Long: `Keeps the kernel's forwarding state as the desired state says, and serves the
other commands on /run/vrouter/NODE.sock. SIGINT and SIGTERM end it; packets
flow on, also when it is killed. A later start takes over where it was.`,
		Example: `  vrouter agent --config node.yaml

  where node.yaml is at least
      node: a
  and may name the network namespace, the underlay devices, a first state:
      netns: node-a
      fabric: [eth1]
      state: state.yaml

  vrouter agent --config node.yaml --store etcd://10.0.0.1,10.0.0.2 --tls-ca ca.pem --tls-cert node.pem --tls-key node-key.pem
  vrouter agent --config node.yaml --store embedded`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := agent.LoadConfig(config)
			if err != nil {
				return err
			}
			from.fill(&c)
			if os.Getenv("GOGC") == "" {
				debug.SetGCPercent(50) // it has little to do and shall not be large
			}
			log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: level}))
			err = agent.Run(cmd.Context(), c, agent.Options{Version: version + " (" + revision + ")", Logger: log})
			if cmd.Context().Err() != nil && (err == nil || errors.Is(err, context.Canceled) || errors.Is(err, errInterrupted)) {
				return nil // told to end, and ended in order
			}
			return err
		},
	}
	configFlag(cmd, &config)
	from.add(cmd)
	cmd.Flags().TextVar(&level, "log", slog.LevelInfo, "log from this `level` on: debug, info, warn, error")
	cmd.RegisterFlagCompletionFunc("log", words("debug", "info", "warn", "error"))
	return cmd
}

// storeFlags say where the desired state is, over what the configuration says.
type storeFlags struct{ address, ca, cert, key string }

func (f *storeFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.address, "store", "", "where the desired state is: file, embedded or `etcd://HOST:PORT,…` (default file)")
	flags.StringVar(&f.ca, "tls-ca", "", "`file` of the certificates that the store's are signed by (default the system's)")
	flags.StringVar(&f.cert, "tls-cert", "", "`file` of this node's certificate for the store")
	flags.StringVar(&f.key, "tls-key", "", "`file` of its key")
}

func (f *storeFlags) fill(c *agent.Config) {
	for _, s := range []struct {
		from string
		to   *string
	}{{f.address, &c.Store}, {f.ca, &c.StoreTLS.CA}, {f.cert, &c.StoreTLS.Cert}, {f.key, &c.StoreTLS.Key}} {
		if s.from != "" {
			*s.to = s.from
		}
	}
}

func configFlag(cmd *cobra.Command, config *string) {
	cmd.Flags().StringVarP(config, "config", "c", "", "the node's configuration, a YAML `file`")
	cmd.MarkFlagRequired("config")
	cmd.MarkFlagFilename("config", "yaml", "yml")
}

func removeCommand() *cobra.Command {
	var config string
	var withStore bool
	cmd := &cobra.Command{
		Use:   "remove --config FILE",
		Short: "Take everything of a node away: agent, programs, tables, devices, state",
		Long: `Ends the node's agent if one runs, detaches every program, removes tables,
the devices that were made for ports, sockets and pins. Workloads lose their
networks. Nothing else of the host is touched. A store that the agent embeds goes
too; where other nodes use it, only with --with-store.`,
		Example: "  vrouter remove --config node.yaml",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := agent.LoadConfig(config)
			if err != nil {
				return err
			}
			if os.Geteuid() != 0 {
				return fmt.Errorf("only root may remove node %s; use sudo", c.Node)
			}
			if err := agent.Remove(c, withStore); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "node %s is removed\n", c.Node)
			return nil
		},
	}
	configFlag(cmd, &config)
	cmd.Flags().BoolVar(&withStore, "with-store", false, "remove a store also where other nodes use it")
	return cmd
}
