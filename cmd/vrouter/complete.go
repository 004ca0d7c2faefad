package main

import (
	"context"
	"errors"
	"net"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"windtunnel/internal/lists"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/model"
)

// completer proposes values for a flag or an argument.
type completer = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)

// completeNodes proposes the nodes whose agents run on this host.
func completeNodes(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	nodes, err := api.Nodes(api.RunDir)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return nodes, cobra.ShellCompDirectiveNoFileComp
}

// propose asks the agent. The shell waits for the answer, so the timeout is short.
func propose(ask func(context.Context, *api.Client) ([]string, error)) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	c, err := connect()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	defer c.Close()
	words, err := ask(ctx, c)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}

// completeNames proposes the names of one kind of object in the desired state.
func completeNames[O any](all func(model.State) []O, name func(O) string) completer {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return propose(func(ctx context.Context, c *api.Client) (names []string, err error) {
			state, err := c.KnownState(ctx)
			for _, o := range all(state) {
				names = append(names, name(o))
			}
			return names, err
		})
	}
}

var (
	completePorts      = completeNames(func(s model.State) []model.Port { return s.Ports }, func(p model.Port) string { return p.Name })
	completeNetworks   = completeNames(func(s model.State) []model.Network { return s.Networks }, func(n model.Network) string { return n.Name })
	completePolicies   = completeNames(func(s model.State) []model.Policy { return s.Policies }, func(p model.Policy) string { return p.Name })
	completeGateways   = completeNames(func(s model.State) []model.Gateway { return s.Gateways }, func(g model.Gateway) string { return g.Name })
	completeFleetNodes = completeNames(func(s model.State) []model.Node { return s.Nodes }, func(n model.Node) string { return n.Name })
)

// completeOwnPorts proposes the ports of the agent's node, for commands that
// concern a device.
func completeOwnPorts(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return propose(func(ctx context.Context, c *api.Client) ([]string, error) {
		rows, err := portRows(ctx, c, "", false)
		names := lists.Map(rows, func(r portRow) string { return r.Name })
		return names, err
	})
}

// words proposes the values of a fixed list.
func words(list ...string) completer {
	return cobra.FixedCompletions(list, cobra.ShellCompDirectiveNoFileComp)
}

// firstArgument proposes values for the first argument only.
func firstArgument(propose completer) completer {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return propose(cmd, args, typed)
	}
}

// values are flags with known values whose commands do not set a completion.
var values = map[string]completer{
	"store": words("file", "embedded", "etcd://"), "locator": words("auto"), "chain": words("portmap", "bandwidth"),
	"device": completeDevices, "netns": completeNamespaces,
	"bin-dir": completeFolders, "conf-dir": completeFolders, "plugin-dir": completeFolders,
}

// files are flags with the path of a file.
var files = []string{"socket", "docker-socket", "config", "file", "state", "tls-ca", "tls-cert", "tls-key"}

// arguments are commands with known arguments that do not set a completion.
var arguments = map[string]completer{
	"vrouter man": completeFolders, "vrouter docker package": completeFolders,
	"vrouter route add": firstArgument(completeNetworks), "vrouter route delete": firstArgument(completeNetworks),
	"vrouter flow get": firstArgument(words("tcp", "udp", "icmp", "icmp6", "sctp")), "vrouter store grant node": firstArgument(completeFleetNodes),
}

// completions sets the completion of the arguments and flags below cmd that have none. Only
// arguments and flags with paths complete to files.
func completions(cmd *cobra.Command) {
	if complete := arguments[cmd.CommandPath()]; complete != nil {
		cmd.ValidArgsFunction = complete
	} else if cmd.ValidArgsFunction == nil {
		cmd.ValidArgsFunction = cobra.NoFileCompletions
	}
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		complete := values[f.Name]
		if complete == nil {
			complete = cobra.NoFileCompletions
		}
		if _, has := cmd.GetFlagCompletionFunc(f.Name); !has && !slices.Contains(files, f.Name) {
			_ = cmd.RegisterFlagCompletionFunc(f.Name, complete) // fails only for flags that have one
		}
	})
	for _, below := range cmd.Commands() {
		completions(below)
	}
}

func completeFolders(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// completeDevices proposes the network devices of this host.
func completeDevices(*cobra.Command, []string, string) (names []string, _ cobra.ShellCompDirective) {
	devices, err := net.Interfaces()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	for _, d := range devices {
		names = append(names, d.Name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeNamespaces proposes the named network namespaces, and files if none of them fits.
func completeNamespaces(*cobra.Command, []string, string) (names []string, _ cobra.ShellCompDirective) {
	entries, err := os.ReadDir("/run/netns")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, cobra.ShellCompDirectiveError
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, cobra.ShellCompDirectiveDefault
}
