package main

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"slices"

	"github.com/spf13/cobra"

	"windtunnel/internal/cli"
	"windtunnel/vrouter/api"
)

// Output formats of `vrouter node locators`.
const (
	asIPRoute format = "ip-route"
	asFRR     format = "frr"
)

// locatorRoute is the route that the underlay needs to the locator of a node.
type locatorRoute struct {
	Node    string       `json:"node"`
	Locator netip.Prefix `json:"locator"`
	Via     netip.Addr   `json:"via,omitzero"` // IPv6 underlay address of the node; zero: none
}

func nodeLocatorsCommand() *cobra.Command {
	var output format
	cmd := &cobra.Command{
		Use:     "locators",
		Short:   "Print the routes that the underlay needs to the nodes' locators",
		Long:    "Prints one route for each node with a locator. Add these routes to the routers of the\nunderlay, or to the other nodes if all nodes are on one link. The next hop is the\nfirst IPv6 underlay address of the node.",
		Example: "  vrouter node locators -o frr",
		Args:    cli.Takes(0, 0),
		RunE: withAgent(func(ctx context.Context, cmd *cobra.Command, c *api.Client, _ []string) error {
			nodes, err := c.Nodes(ctx)
			if err != nil {
				return err
			}
			routes := locatorRoutes(nodes)
			if output == asJSON {
				return writeJSON(cmd.OutOrStdout(), routes)
			}
			writeLocatorRoutes(cmd.OutOrStdout(), routes, output)
			return nil
		}),
	}
	outputFlag(cmd, &output, asIPRoute, asFRR, asJSON)
	return cmd
}

func locatorRoutes(nodes []api.Node) []locatorRoute {
	routes := []locatorRoute{}
	for _, n := range nodes {
		if !n.Locator.IsValid() {
			continue
		}
		r := locatorRoute{Node: n.Name, Locator: n.Locator}
		if i := slices.IndexFunc(n.Underlay, netip.Addr.Is6); i >= 0 {
			r.Via = n.Underlay[i]
		}
		routes = append(routes, r)
	}
	return routes
}

// writeLocatorRoutes prints routes as commands of iproute2 or as configuration of FRR.
func writeLocatorRoutes(w io.Writer, routes []locatorRoute, output format) {
	if len(routes) == 0 {
		fmt.Fprintln(w, "no node has a locator; set one with `vrouter node add NAME --underlay ADDRESS --locator PREFIX`")
	}
	for _, r := range routes {
		line, comment := "ip -6 route replace %s via %s\n", "#"
		if output == asFRR {
			line, comment = "ipv6 route %s %s\n", "!"
		}
		if !r.Via.IsValid() {
			fmt.Fprintf(w, "%s node %s has no IPv6 underlay address; add a route to %s with a next hop that leads to the node\n", comment, r.Node, r.Locator)
			continue
		}
		fmt.Fprintf(w, line, r.Locator, r.Via)
	}
}
