package main

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"slices"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"windtunnel/vrouter/agent"
	"windtunnel/vrouter/agent/config"
	"windtunnel/vrouter/agent/netdev"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/model"
)

// diagnoseUnderlay checks the underlay devices of a node, in the node's network
// namespace.
func diagnoseUnderlay(c config.Config) []api.Finding {
	done := make(chan []api.Finding, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine, in the node's namespace
		done <- checkUnderlay(c)
	}()
	return <-done
}

func checkUnderlay(c config.Config) []api.Finding {
	if err := enter(c.Netns); err != nil {
		return []api.Finding{{Topic: "attach", Level: api.LevelProblem, Text: fmt.Sprintf("enter the network namespace %s: %v", c.Netns, err), Remedy: "create it before the agent starts; see `ip netns list`"}}
	}
	devices, finding := underlayDevices(c)
	if finding != nil {
		return []api.Finding{*finding}
	}
	var findings []api.Finding
	for _, name := range devices {
		findings = append(findings, checkDevice(name)...)
	}
	return append(findings, otherVXLAN(c)...)
}

// otherVXLAN reports other VXLAN devices on the port that this node may use.
func otherVXLAN(c config.Config) []api.Finding {
	port := uint16(model.DefaultVXLANPort)
	if c.State != "" {
		if s, err := readState(c.State, os.Stdin); err == nil {
			port = s.WithDefaults().Settings.VXLANPort
		}
	}
	links, err := netlink.LinkList()
	if err != nil {
		return []api.Finding{{Topic: "attach", Level: api.LevelProblem, Text: fmt.Sprintf("list the devices: %v", err)}}
	}
	var all []api.Finding
	for _, l := range links {
		if v, is := l.(*netlink.Vxlan); is && v.Port == int(port) && v.Name != netdev.GRODevice {
			all = append(all, api.Finding{Topic: "attach", Level: api.LevelNote, Text: fmt.Sprintf("VXLAN device %s uses UDP port %d: if this node and another one offer vxlan, its packets from and to the nodes are dropped", v.Name, port), Remedy: "set settings.vxlan_port to another port, or remove vxlan from the nodes' encapsulations"})
		}
	}
	return all
}

// enter moves this thread into a network namespace, given by name or path.
func enter(name string) error {
	if name == "" {
		return nil
	}
	s, err := netdev.Open(name)
	if err != nil {
		return err
	}
	defer s.Close()
	return netns.Set(s.Ns)
}

// underlayDevices returns the devices that the configuration lists. Without a
// list it returns the devices that have the node's underlay addresses.
func underlayDevices(c config.Config) ([]string, *api.Finding) {
	if len(c.Fabric) > 0 {
		return c.Fabric, nil
	}
	if c.State == "" {
		return nil, &api.Finding{Topic: "mtu", Level: api.LevelNote, Text: "the configuration has neither underlay devices nor a state: MTU and offloads were not checked", Remedy: "list the devices, such as fabric: [eth1]"}
	}
	problem := func(format string, args ...any) ([]string, *api.Finding) {
		return nil, &api.Finding{Topic: "attach", Level: api.LevelProblem, Text: fmt.Sprintf(format, args...), Remedy: "correct the state, or list the devices in the configuration, such as fabric: [eth1]"}
	}
	state, err := readState(c.State, os.Stdin)
	if err != nil {
		return problem("%v", err)
	}
	at := slices.IndexFunc(state.Nodes, func(n model.Node) bool { return n.Name == c.Node })
	if at < 0 {
		return problem("%s has no node %q", c.State, c.Node)
	}
	devices, err := devicesWith(state.Nodes[at])
	switch {
	case err != nil:
		return problem("find the underlay devices: %v", err)
	case len(devices) == 0:
		return problem("no device of this host has an underlay address of node %s (%s)", c.Node, joined(state.Nodes[at].Underlay))
	}
	return devices, nil
}

// devicesWith returns the devices that have a node's underlay addresses.
func devicesWith(n model.Node) ([]string, error) {
	links, err := netlink.LinkList()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, l := range links {
		addrs, err := netlink.AddrList(l, netlink.FAMILY_ALL)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(addrs, func(a netlink.Addr) bool {
			return slices.ContainsFunc(n.Underlay, func(u netip.Addr) bool { return a.IP.Equal(u.AsSlice()) })
		}) {
			names = append(names, l.Attrs().Name)
		}
	}
	return names, nil
}

func checkDevice(name string) []api.Finding {
	l, err := netlink.LinkByName(name)
	var missing netlink.LinkNotFoundError
	switch {
	case errors.As(err, &missing):
		return []api.Finding{{Topic: "attach", Level: api.LevelProblem, Text: "there is no underlay device " + name, Remedy: "see `ip link` in the node's namespace"}}
	case err != nil:
		return []api.Finding{{Topic: "attach", Level: api.LevelProblem, Text: fmt.Sprintf("read the underlay device %s: %v", name, err)}}
	}
	findings := []api.Finding{agent.MTUFinding(name, l.Attrs().MTU, model.DefaultEncapsulations, false)}
	if why, remedy := netdev.Unusable(l); why != "" {
		findings = append(findings, api.Finding{Topic: "attach", Level: api.LevelProblem, Text: "the underlay device " + name + " " + why, Remedy: remedy})
	}
	return append(findings, agent.OffloadFindings(name, model.DefaultEncapsulations)...)
}
