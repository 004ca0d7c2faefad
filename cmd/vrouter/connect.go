package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"windtunnel/internal/cli"
	"windtunnel/vrouter/api"
)

// target selects the agent that the commands use.
var target struct {
	node, socket string
	timeout      time.Duration // time limit of an answer; 0: no limit
}

// connect makes a client for the target.
func connect() (*api.Client, error) {
	if target.socket != "" {
		if target.node != "" {
			return nil, cli.Misuse(fmt.Errorf("--node and --socket exclude each other: both select the agent; give one"))
		}
		return api.Dial(target.socket).Within(target.timeout), nil
	}
	socket, err := api.Find(api.RunDir, target.node)
	if err != nil {
		return nil, err
	}
	return api.Dial(socket).Within(target.timeout), nil
}

// withAgent runs a command's body with a client of the agent.
func withAgent(body func(ctx context.Context, cmd *cobra.Command, c *api.Client, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c, err := connect()
		if err != nil {
			return err
		}
		defer c.Close()
		return body(cmd.Context(), cmd, c, args)
	}
}

// vrfOf finds a VRF by its number or the name of its network. Without a name it
// returns 0, which stands for all VRFs.
func vrfOf(ctx context.Context, c *api.Client, name string) (uint32, error) {
	if name == "" {
		return 0, nil
	}
	number, err := strconv.ParseUint(name, 10, 32)
	if err == nil && number == 0 {
		return 0, cli.Misuse(fmt.Errorf("--vrf 0 is the underlay, which has no tables here: give a number above 0"))
	}
	state, stateErr := c.KnownState(ctx)
	if stateErr != nil {
		return 0, stateErr
	}
	var names []string
	for _, n := range state.Networks {
		if n.Name == name || err == nil && n.ID == uint32(number) {
			return n.ID, nil
		}
		names = append(names, fmt.Sprintf("%s (%d)", n.Name, n.ID))
	}
	if len(names) == 0 {
		return 0, fmt.Errorf("--vrf %s: there are no networks; create one with `vrouter network create`", name)
	}
	slices.Sort(names)
	return 0, fmt.Errorf("--vrf %s: there is no such network; the networks are: %s", name, strings.Join(names, ", "))
}
