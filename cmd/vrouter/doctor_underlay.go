package main

import (
	"fmt"
	"net/netip"
	"os"
	"slices"

	"github.com/vishvananda/netlink"

	"windtunnel/internal/lists"
	"windtunnel/vrouter/agent"
	"windtunnel/vrouter/agent/config"
	"windtunnel/vrouter/agent/netdev"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/model"
)

// diagnoseUnderlay checks the underlay devices of a node, in the node's network
// namespace.
func diagnoseUnderlay(c config.Config) []api.Finding {
	problem := func(remedy, format string, args ...any) api.Finding {
		return api.Finding{Topic: "attach", Level: api.LevelProblem, Text: fmt.Sprintf(format, args...), Remedy: remedy}
	}
	const correct = "correct the state, or list the devices in the configuration, such as fabric: [eth1]"
	s, err := netdev.Open(c.Netns)
	if err != nil {
		return []api.Finding{problem("create it before the agent starts; see `ip netns list`", "enter the network namespace %s: %v", c.Netns, err)}
	}
	defer s.Close()
	var state model.State
	if c.State != "" {
		state, err = readState(c.State, os.Stdin)
	}
	state = state.WithDefaults()
	self, known := state.Node(c.Node)
	switch {
	case len(c.Fabric) > 0: // the configuration suffices
	case c.State == "":
		return []api.Finding{{Topic: "mtu", Level: api.LevelNote, Text: "the configuration has neither underlay devices nor a state: MTU and offloads were not checked", Remedy: "list the devices, such as fabric: [eth1]"}}
	case err != nil:
		return []api.Finding{problem(correct, "%v", err)}
	case !known:
		return []api.Finding{problem(correct, "%s has no node %q", c.State, c.Node)}
	}
	links, missing, err := netdev.FabricDevices(netdev.NewDevices(s), c.Fabric, self.Underlay)
	if err != nil {
		return []api.Finding{problem("", "find the underlay devices: %v", err)}
	}
	findings := lists.Map(missing, func(m string) api.Finding { return problem("", "%s", m) })
	if !known {
		self.Encapsulations = model.DefaultEncapsulations
	}
	v6 := known && !slices.ContainsFunc(self.Underlay, netip.Addr.Is4)
	for _, l := range links {
		name := l.Attrs().Name
		findings = append(findings, agent.MTUFinding(name, l.Attrs().MTU, self.Encapsulations, v6))
		if why, remedy := netdev.Unusable(l); why != "" {
			findings = append(findings, problem(remedy, "the underlay device %s %s", name, why))
		}
		s.Do(func() error {
			findings = append(findings, agent.OffloadFindings(name, self.Encapsulations)...)
			return nil
		})
	}
	return append(findings, otherVXLAN(s, state.Settings.VXLANPort)...)
}

// otherVXLAN reports other VXLAN devices on the port that this node may use.
func otherVXLAN(s *netdev.Space, port uint16) (all []api.Finding) {
	links, err := netdev.Links(s.Links)
	if err != nil {
		return []api.Finding{{Topic: "attach", Level: api.LevelProblem, Text: fmt.Sprintf("list the devices: %v", err)}}
	}
	for _, l := range links {
		if v, is := l.(*netlink.Vxlan); is && v.Port == int(port) && v.Name != netdev.GRODevice {
			all = append(all, api.Finding{Topic: "attach", Level: api.LevelNote, Text: fmt.Sprintf("VXLAN device %s uses UDP port %d: if this node and another one offer vxlan, its packets from and to the nodes are dropped", v.Name, port), Remedy: "set settings.vxlan_port to another port, or remove vxlan from the nodes' encapsulations"})
		}
	}
	return all
}
