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
	"windtunnel/vrouter/api"
)

func agentCommand() *cobra.Command {
	var config string
	var level slog.Level
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
      state: state.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := agent.LoadConfig(config)
			if err != nil {
				return err
			}
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
	cmd.Flags().TextVar(&level, "log", slog.LevelInfo, "log from this `level` on: debug, info, warn, error")
	cmd.RegisterFlagCompletionFunc("log", words("debug", "info", "warn", "error"))
	return cmd
}

func configFlag(cmd *cobra.Command, config *string) {
	cmd.Flags().StringVarP(config, "config", "c", "", "the node's configuration, a YAML `file`")
	cmd.MarkFlagRequired("config")
	cmd.MarkFlagFilename("config", "yaml", "yml")
}

func removeCommand() *cobra.Command {
	var config string
	cmd := &cobra.Command{
		Use:   "remove --config FILE",
		Short: "Take everything of a node away: agent, programs, tables, devices, state",
		Long: `Ends the node's agent if one runs, detaches every program, removes tables,
the devices that were made for ports, sockets and pins. Workloads lose their
networks. Nothing else of the host is touched.`,
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
			if err := removeNode(cmd.Context(), c); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "node %s is removed\n", c.Node)
			return nil
		},
	}
	configFlag(cmd, &config)
	return cmd
}

// removeNode asks the node's agent to remove everything; where none answers it
// is done here.
func removeNode(ctx context.Context, c agent.Config) error {
	client := api.Dial(c.Socket)
	defer client.Close()
	err := client.Shutdown(ctx, api.ShutdownRequest{Remove: true})
	var none *api.Unreachable
	if errors.As(err, &none) {
		return agent.Remove(c)
	}
	return err
}
