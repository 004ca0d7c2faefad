package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"windtunnel/internal/cli"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/docker"
)

func dockerCommand() *cobra.Command {
	var o docker.ServeOptions
	cmd := &cobra.Command{
		Use:   "docker",
		Short: "Run as Docker's network and IPAM plugin",
		Long: `Serves the Docker daemon of this host on a socket in Docker's plugin folder, or on
the socket that systemd passes. The agent must run. Containers keep their networks
while the plugin is stopped.

Create docker networks with --ipam-driver, so that the fleet allocates addresses.
Otherwise each daemon allocates the same addresses.`,
		Example: `  vrouter docker &
  docker network create --driver vrouter --opt network=red --ipam-driver vrouter --ipam-opt network=red --subnet 10.1.0.0/16 red
  docker run --network red …`,
		Args: cli.Takes(0, 0),
		RunE: withAgent(func(ctx context.Context, cmd *cobra.Command, c *api.Client, _ []string) error {
			status, err := c.Status(ctx)
			if err != nil {
				return err
			}
			if o.State == "" {
				o.State = filepath.Join("/var/lib/vrouter", status.Node, "docker.json")
			}
			o.Client = c
			return docker.Serve(ctx, o, func(socket string) { fmt.Fprintln(cmd.ErrOrStderr(), "serving Docker on", socket) })
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&o.Name, "name", "vrouter", "Name of the driver")
	flags.StringVar(&o.Dir, "plugin-dir", "/run/docker/plugins", "Directory of Docker's plugin sockets")
	flags.StringVar(&o.Scope, "scope", "local", "Scope of docker networks: each host (local) or the swarm (global)")
	flags.StringVar(&o.Socket, "docker-socket", "/run/docker.sock", "Socket of the Docker daemon; the plugin reads auxiliary addresses there")
	flags.DurationVar(&o.Reserve, "reserve", docker.DefaultReserve, "Time after which an address that Docker reserved but did not use is freed")
	flags.StringVar(&o.State, "state", "", "File that stores the docker networks (default /var/lib/vrouter/NODE/docker.json)")
	cmd.RegisterFlagCompletionFunc("scope", words("local", "global"))
	cmd.AddCommand(dockerPackage())
	return cmd
}

func dockerPackage() *cobra.Command {
	return &cobra.Command{
		Use:   "package FOLDER",
		Short: "Write a managed Docker plugin",
		Long: `Writes a folder for docker plugin create. Docker then runs the plugin in a
container on each host, beside the agent. A swarm accepts only such plugins; their
networks are the swarm's (--scope global).`,
		Example: `  vrouter docker package /tmp/vrouter-plugin
  docker plugin create vrouter /tmp/vrouter-plugin && docker plugin enable vrouter
  docker network create --driver vrouter:latest --attachable --opt network=red --ipam-driver vrouter:latest --ipam-opt network=red --subnet 10.1.0.0/16 red`,
		Args: cli.Takes(1, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			self, err := os.Executable()
			if err != nil {
				return err
			}
			return docker.Package(args[0], self)
		},
	}
}
