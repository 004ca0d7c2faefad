package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"windtunnel/vrouter/api"
	"windtunnel/vrouter/docker"
)

func dockerCommand() *cobra.Command {
	var o docker.ServeOptions
	cmd := &cobra.Command{
		Use:   "docker",
		Short: "Serve Docker as its network and address plugin",
		Long: `Serves this host's Docker daemon beside the agent, on a socket that Docker looks
for, or on the one that systemd hands over. Containers keep their networks while
it is not there.

Let the fleet choose addresses (--ipam-driver): a daemon's own choice is one
that every other daemon makes too.`,
		Example: `  vrouter docker &
  docker network create --driver vrouter --opt network=red --ipam-driver vrouter --ipam-opt network=red --subnet 10.1.0.0/16 red
  docker run --network red …`,
		Args: cobra.NoArgs,
		RunE: withAgent(func(ctx context.Context, cmd *cobra.Command, c *api.Client, _ []string) error {
			status, err := c.Status(ctx)
			if err != nil {
				return err
			}
			if o.State == "" {
				o.State = filepath.Join("/var/lib/vrouter", status.Node, "docker.json")
			}
			o.Client = c
			return docker.Serve(ctx, o, func(socket string) { fmt.Fprintln(cmd.ErrOrStderr(), "serves Docker on", socket) })
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&o.Name, "name", "vrouter", "the driver's `name`")
	flags.StringVar(&o.Dir, "plugin-dir", "/run/docker/plugins", "`folder` in which Docker looks for plugins")
	flags.StringVar(&o.Scope, "scope", "local", "docker networks are made on each host (local), or by a swarm (global)")
	flags.StringVar(&o.State, "state", "", "`file` in which docker networks are noted (default /var/lib/vrouter/NODE/docker.json)")
	cmd.RegisterFlagCompletionFunc("scope", words("local", "global"))
	cmd.AddCommand(dockerPackage())
	return cmd
}

func dockerPackage() *cobra.Command {
	return &cobra.Command{
		Use:   "package FOLDER",
		Short: "Write this program as a plugin that Docker runs itself",
		Long: `Writes a folder for docker plugin create. Docker then runs the plugin in a
container of its own, on each host whose agent runs: a swarm takes no other kind.
Its networks are the swarm's (--scope global).`,
		Example: `  vrouter docker package /tmp/vrouter-plugin
  docker plugin create vrouter /tmp/vrouter-plugin && docker plugin enable vrouter
  docker network create --driver vrouter:latest --attachable --opt network=red --ipam-driver vrouter:latest --ipam-opt network=red --subnet 10.1.0.0/16 red`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			self, err := os.Executable()
			if err != nil {
				return err
			}
			return docker.Package(args[0], self)
		},
	}
}
