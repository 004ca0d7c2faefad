package main

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"windtunnel/internal/cli"
	"windtunnel/internal/phrase"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/bgp"
	"windtunnel/vrouter/inspect"
	"windtunnel/vrouter/model"
)

func bgpCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bgp",
		Short: "Exchange routes with routers outside the fleet by BGP",
		Example: `  vrouter bgp enable --asn 64512 --router-id 192.0.2.1 --neighbor 192.0.2.254
  vrouter bgp neighbor
  vrouter bgp rib --why`,
	}
	cmd.AddCommand(bgpEnableCommand(), bgpDisableCommand(), bgpNeighborCommand(), bgpRIBCommand())
	return cmd
}

func bgpEnableCommand() *cobra.Command {
	var b model.BGP
	var on string
	cmd := &cobra.Command{
		Use:   "enable --asn NUMBER --router-id ADDRESS --neighbor ADDRESS…",
		Short: "Make the agent of a node a BGP speaker, or change its settings",
		Long: `Makes the agent of a node a BGP speaker. It announces the node's ports in networks
that export route targets, and uses the routes that the node's networks import. The
settings replace all earlier BGP settings of the node. After the address of a
neighbour, you can set asn, port, password, encapsulation, bfd and maximum_prefix. bfd
is the interval of BFD packets: a neighbour that sends none for three intervals has
failed. The session of a neighbour that announces more paths of a family than
maximum_prefix ends for 5 minutes.`,
		Example: `  vrouter bgp enable --asn 64512 --router-id 192.0.2.1 --neighbor 192.0.2.254
  vrouter bgp enable --asn 64512 --router-id 192.0.2.1 --neighbor 192.0.2.254,asn=64999,password=secret --family evpn
  vrouter bgp enable --asn 64512 --router-id 192.0.2.1 --neighbor 192.0.2.254,bfd=50ms`,
		Args: cli.Takes(0, 0),
		RunE: withAgent(func(ctx context.Context, cmd *cobra.Command, c *api.Client, _ []string) error {
			node, err := bgpNode(ctx, c, on)
			if err != nil {
				return err
			}
			if err := c.PutBGP(ctx, api.BGPRequest{Node: node, BGP: &b}); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "node %s speaks BGP with %s\n", node, phrase.Count(len(b.Neighbors), "neighbour"))
			return nil
		}),
	}
	flags := cmd.Flags()
	flags.Uint32Var(&b.ASN, "asn", 0, "AS `number` of the node")
	flags.TextVar(&b.RouterID, "router-id", netip.Addr{}, "IPv4 `address` that identifies the node to its neighbours")
	flags.Uint16Var(&b.Port, "port", 0, "TCP port to listen on (default 179)")
	flags.Func("neighbor", "Router to exchange routes with, as `ADDRESS[,KEY=VALUE…]`, such as 192.0.2.254,asn=64999 (repeatable)", func(text string) error {
		n, err := parseNeighbor(text)
		b.Neighbors = append(b.Neighbors, n)
		return err
	})
	familyFlag(cmd, &b.Families, "Address families to exchange: vpnv4, vpnv6, evpn (repeatable; default all)")
	bgpNodeFlag(cmd, &on)
	for _, name := range []string{"asn", "router-id", "neighbor"} {
		cmd.MarkFlagRequired(name)
	}
	return cmd
}

func familyFlag(cmd *cobra.Command, all *[]model.BGPFamily, usage string) {
	parse := func(word string) (model.BGPFamily, error) {
		if f := model.BGPFamily(word); slices.Contains(model.BGPFamilies, f) {
			return f, nil
		}
		return "", fmt.Errorf("%q is not a family; write one of vpnv4, vpnv6, evpn", word)
	}
	listFlag(cmd, all, parse, "family", usage)
	cmd.RegisterFlagCompletionFunc("family", words("vpnv4", "vpnv6", "evpn"))
}

func bgpNodeFlag(cmd *cobra.Command, on *string) {
	cmd.Flags().StringVar(on, "on", "", "Name of the `node` to configure (default: the agent's)")
	cmd.RegisterFlagCompletionFunc("on", completeFleetNodes)
}

// bgpNode returns the node that --on names, or the agent's node.
func bgpNode(ctx context.Context, c *api.Client, on string) (string, error) {
	if on != "" {
		return on, nil
	}
	s, err := c.Status(ctx)
	return s.Node, err
}

// parseNeighbor parses ADDRESS,KEY=VALUE,….
func parseNeighbor(text string) (n model.Neighbor, err error) {
	parts := strings.Split(text, ",")
	if n.Address, err = parseAddress(parts[0]); err != nil {
		return n, err
	}
	for _, part := range parts[1:] {
		switch key, value, _ := strings.Cut(part, "="); key {
		case "asn":
			err = number(&n.ASN, value)
		case "port":
			var port uint64
			if port, err = strconv.ParseUint(value, 10, 16); err != nil {
				err = fmt.Errorf("%q is not a port number; write one from 1 to 65535", value)
			}
			n.Port = uint16(port)
		case "password":
			n.Password = value
		case "encapsulation":
			n.Encapsulation = model.Encapsulation(value)
		case "bfd":
			err = n.BFD.UnmarshalText([]byte(value))
		case "maximum_prefix":
			err = number(&n.MaximumPrefix, value)
		default:
			return n, fmt.Errorf("unknown key %q; write asn, port, password, encapsulation, bfd or maximum_prefix", key)
		}
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

func bgpDisableCommand() *cobra.Command {
	var on string
	cmd := &cobra.Command{
		Use:     "disable",
		Short:   "End the BGP sessions of a node and delete its BGP settings",
		Example: "  vrouter bgp disable",
		Args:    cli.Takes(0, 0),
		RunE: withAgent(func(ctx context.Context, cmd *cobra.Command, c *api.Client, _ []string) error {
			node, err := bgpNode(ctx, c, on)
			if err != nil {
				return err
			}
			if err := c.PutBGP(ctx, api.BGPRequest{Node: node}); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "node %s does not speak BGP\n", node)
			return nil
		}),
	}
	bgpNodeFlag(cmd, &on)
	return cmd
}

func bgpNeighborCommand() *cobra.Command {
	return listing(&cobra.Command{
		Use:     "neighbor",
		Short:   "List the BGP neighbours of the node, and why sessions are missing",
		Aliases: []string{"neighbors", "neighbour"},
		Example: "  vrouter bgp neighbor\n  vrouter bgp neighbor -o json",
	}, (*api.Client).BGPNeighbors, func(rows []bgp.Neighbor) inspect.Table { return neighborTable(rows, time.Now()) })
}

func neighborTable(rows []bgp.Neighbor, now time.Time) inspect.Table {
	t := inspect.Table{
		Empty: "no neighbours; add one with `vrouter bgp enable`",
		Columns: []inspect.Column{
			{Name: "Neighbor"}, {Name: "ASN", Right: true}, {Name: "State"}, {Name: "Since", Leave: 2},
			{Name: "BFD", Leave: 5}, {Name: "Received", Right: true}, {Name: "Stale", Right: true, Leave: 3}, {Name: "Sent", Right: true, Leave: 4}, {Name: "Reason", Least: 12, Leave: 1},
		},
	}
	for _, n := range rows {
		since, asn := "", ""
		if !n.Since.IsZero() {
			since = ago(n.Since, now)
		}
		if n.ASN != 0 { // of a refused address
			asn = fmt.Sprint(n.ASN)
		}
		t.Add(n.Address.String(), dash(asn), n.State, dash(since), dash(n.BFD), fmt.Sprint(n.Received), fmt.Sprint(n.Stale), fmt.Sprint(n.Sent), dash(reasonText(n)))
	}
	return t
}

// reasonText returns why a neighbour has no session, or else the error of its last malformed message, with the number of
// such messages; "" if there were none.
func reasonText(n bgp.Neighbor) string {
	if n.Reason != "" || n.MalformedCount < 2 {
		return cmp.Or(n.Reason, n.Malformed)
	}
	return fmt.Sprintf("%s (the last of %d)", n.Malformed, n.MalformedCount)
}

func bgpRIBCommand() *cobra.Command {
	var output format
	var families []model.BGPFamily
	var why, announced bool
	cmd := &cobra.Command{
		Use:   "rib",
		Short: "List the paths that the neighbours announce, and whether the node uses them",
		Example: `  vrouter bgp rib
  vrouter bgp rib --family evpn --why
  vrouter bgp rib --announced -o json`,
		Args: cli.Takes(0, 0),
		RunE: withAgent(func(ctx context.Context, cmd *cobra.Command, c *api.Client, _ []string) error {
			all, err := c.BGPPaths(ctx, announced)
			if err != nil {
				return err
			}
			rows := slices.DeleteFunc(all, func(v bgp.Verdict) bool { return len(families) > 0 && !slices.Contains(families, v.Family) })
			if err := show(cmd.OutOrStdout(), output, rows, ribTable(rows, why)); err != nil || !why || announced || output != asTable {
				return err
			}
			neighbors, err := c.BGPNeighbors(ctx)
			for _, n := range neighbors {
				if text := reasonText(n); text != "" {
					fmt.Fprintf(cmd.OutOrStdout(), "neighbour %s: %s\n", n.Address, text)
				}
			}
			return err
		}),
	}
	familyFlag(cmd, &families, "List only paths of these address families: vpnv4, vpnv6, evpn (repeatable)")
	cmd.Flags().BoolVar(&why, "why", false, "Add a column that says why paths are not used, and say for each neighbour why paths are missing")
	cmd.Flags().BoolVar(&announced, "announced", false, "List the paths that the node announces instead")
	outputFlag(cmd, &output)
	return cmd
}

func ribTable(rows []bgp.Verdict, why bool) inspect.Table {
	t := inspect.Table{
		Empty: "no paths",
		Columns: []inspect.Column{
			{Name: "Family"}, {Name: "Kind", Leave: 3}, {Name: "Destination", Least: 12}, {Name: "RD", Leave: 4}, {Name: "Next hop"},
			{Name: "Encapsulation", Leave: 2}, {Name: "Value", Right: true, Leave: 1}, {Name: "State"}, {Name: "Networks", Least: 8, Leave: 5},
		},
	}
	if why {
		t.Columns = append(t.Columns, inspect.Column{Name: "Why", Least: 12})
	}
	for _, v := range rows {
		value := ""
		if v.Value != 0 {
			value = fmt.Sprint(v.Value)
		}
		cells := []string{
			string(v.Family), string(v.Kind), v.Destination(), v.RD.String(), v.NextHop.String(),
			cmp.Or(string(v.Encapsulation), dash(v.TunnelNames())), dash(value), v.State, dash(strings.Join(v.Networks, " ")),
		}
		if why {
			cells = append(cells, dash(v.Why))
		}
		t.Add(cells...)
	}
	return t
}
