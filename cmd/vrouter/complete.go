package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

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

// completeFrom proposes names from the desired state.
func completeFrom(words func(model.State) []string) completer {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return propose(func(ctx context.Context, c *api.Client) ([]string, error) {
			state, err := c.KnownState(ctx)
			if err != nil {
				return nil, err
			}
			return words(state), nil
		})
	}
}

var completePorts = completeFrom(func(s model.State) []string {
	var names []string
	for _, p := range s.Ports {
		names = append(names, p.Name)
	}
	return names
})

// completeOwnPorts proposes the ports of the agent's node, for commands that
// concern a device.
func completeOwnPorts(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return propose(func(ctx context.Context, c *api.Client) ([]string, error) {
		rows, err := portRows(ctx, c, "", false)
		var names []string
		for _, r := range rows {
			names = append(names, r.Name)
		}
		return names, err
	})
}

var completeNetworks = completeFrom(func(s model.State) []string {
	var names []string
	for _, n := range s.Networks {
		names = append(names, n.Name)
	}
	return names
})

var completePolicies = completeFrom(func(s model.State) []string {
	var names []string
	for _, p := range s.Policies {
		names = append(names, p.Name)
	}
	return names
})

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
