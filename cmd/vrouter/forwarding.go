package main

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"windtunnel/internal/cli"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/inspect"
)

func vifCommand() *cobra.Command {
	return lister[inspect.Vif]{
		name: "vif", what: "Show vifs: the devices of workloads and of the fabric", get: "ID|PORT|DEVICE", noun: "vif",
		rows: (*api.Client).Vifs, table: plain(inspect.VifTable), find: findVif,
		id: func(v inspect.Vif) string { return cmp.Or(v.Port, v.Device) },
		fields: func(_ context.Context, _ *api.Client, v inspect.Vif) (inspect.Fields, error) {
			return inspect.VifFields(v), nil
		},
		sample: [2]string{"", "web1"},
	}.command()
}

// findVif finds a vif by its id, or else by the name of its port or device.
func findVif(rows []inspect.Vif, name string, _ uint32) (inspect.Vif, error) {
	if id, err := strconv.ParseUint(name, 10, 32); err == nil {
		// Several fabric devices share id 0: return the first.
		if at := slices.IndexFunc(rows, func(v inspect.Vif) bool { return v.ID == uint32(id) }); at >= 0 {
			return rows[at], nil
		}
	}
	at := slices.IndexFunc(rows, func(v inspect.Vif) bool { return v.Port == name || v.Device == name })
	if at < 0 {
		return inspect.Vif{}, fmt.Errorf("no vif has the id, port or device %q; see `vrouter vif list`", name)
	}
	return rows[at], nil
}

func nexthopCommand() *cobra.Command {
	return lister[inspect.Nexthop]{
		name: "nh", what: "Show nexthops, to which the table entries point", get: "ID", noun: "nexthop",
		rows: (*api.Client).Nexthops, table: plain(inspect.NexthopTable),
		find: byNumber("nexthop", func(n inspect.Nexthop) uint32 { return n.ID }),
		id:   func(n inspect.Nexthop) string { return fmt.Sprintf("%d\t%s", n.ID, n.Name) }, // the shell shows the text after the tab as a description
		fields: func(ctx context.Context, c *api.Client, n inspect.Nexthop) (inspect.Fields, error) {
			all, err := c.Nexthops(ctx, 0)
			return inspect.NexthopFields(n, all), err
		},
		sample: [2]string{"--vrf red", "12"},
	}.command("nexthop")
}

func routeCommand() *cobra.Command {
	return lister[inspect.Route]{
		name: "rt", what: "Routes: destination to nexthop and label, by VRF", get: "PREFIX|ADDRESS", noun: "route",
		rows: (*api.Client).Routes, table: withNexthops(inspect.RouteTable), find: findRoute, needs: true,
		id:     func(r inspect.Route) string { return r.Destination.String() },
		sample: [2]string{"--vrf red", "10.0.0.4 --vrf red"},
	}.command("route")
}

// findRoute finds the route of a prefix. For an address it finds the longest
// match.
func findRoute(rows []inspect.Route, id string, vrf uint32) (inspect.Route, error) {
	if a, err := netip.ParseAddr(id); err == nil {
		if r, ok := inspect.LongestMatch(rows, vrf, a.Unmap()); ok {
			return r, nil
		}
		return inspect.Route{}, fmt.Errorf("VRF %d has no route to %s: packets to it are dropped (no_route)", vrf, a)
	}
	p, err := netip.ParsePrefix(id)
	if err != nil {
		return inspect.Route{}, cli.Misuse(fmt.Errorf("%q is neither an address nor a prefix; write 10.0.0.4 or 10.0.0.0/16", id))
	}
	at := slices.IndexFunc(rows, func(r inspect.Route) bool { return r.VRF == vrf && r.Destination == p.Masked() })
	if at < 0 {
		return inspect.Route{}, fmt.Errorf("VRF %d has no route %s; give an address to find the route that covers it", vrf, p.Masked())
	}
	return rows[at], nil
}

func bridgeCommand() *cobra.Command {
	return lister[inspect.Bridge]{
		name: "bridge", what: "Show bridge entries: MAC address to nexthop, label and VNI", get: "MAC", noun: "bridge entry",
		rows: (*api.Client).Bridge, table: withNexthops(inspect.BridgeTable), find: findBridge, needs: true,
		id:     func(b inspect.Bridge) string { return b.MAC.String() },
		sample: [2]string{"--vrf red", "02:00:00:00:00:02 --vrf red"},
	}.command()
}

func findBridge(rows []inspect.Bridge, id string, vrf uint32) (inspect.Bridge, error) {
	mac, err := net.ParseMAC(id)
	if err != nil || len(mac) != 6 {
		return inspect.Bridge{}, cli.Misuse(fmt.Errorf("%q is not a MAC address; write one such as 02:00:00:00:00:02", id))
	}
	at := slices.IndexFunc(rows, func(b inspect.Bridge) bool { return b.VRF == vrf && slices.Equal(b.MAC[:], mac) })
	if at < 0 {
		return inspect.Bridge{}, fmt.Errorf("VRF %d has no entry for %s: frames to it are flooded, or dropped (unknown_mac)", vrf, mac)
	}
	return rows[at], nil
}

func targetID(t inspect.Target) uint32 { return t.ID }

func targetName(t inspect.Target) string { return fmt.Sprint(t.ID) }

func labelCommand() *cobra.Command {
	return lister[inspect.Target]{
		name: "mpls", what: "Show MPLS labels of received packets (ILM) and their nexthops", get: "LABEL", noun: "label",
		rows: (*api.Client).Labels, table: withNexthops(inspect.LabelTable), find: byNumber("label", targetID),
		id:     targetName,
		sample: [2]string{"", "30"},
	}.command()
}

func vniCommand() *cobra.Command {
	return lister[inspect.Target]{
		name: "vxlan", what: "Show VNIs of received packets and their nexthops", get: "VNI", noun: "VNI",
		rows: (*api.Client).VNIs, table: withNexthops(inspect.VNITable), find: byNumber("VNI", targetID),
		id:     targetName,
		sample: [2]string{"", "7"},
	}.command()
}

func serviceCommand() *cobra.Command {
	c := &cobra.Command{Use: "service", Short: "Show the services that workloads reach", Example: "  vrouter service list"}
	c.AddCommand(listing(&cobra.Command{
		Use:   "list",
		Short: "List services with their backends",
		Long: `Lists the services of the cluster in the data path of this node: the ready backends of each address, or with
internalTrafficPolicy Local those on this node. Affinity is how long a client keeps its backend.`,
		Example: "  vrouter service list\n  vrouter service list -o json",
	}, (*api.Client).Services, inspect.ServiceTable))
	return c
}
