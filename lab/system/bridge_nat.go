package system

import (
	"errors"

	"windtunnel/lab/program"
	"windtunnel/lab/suite"
)

// BridgeNAT puts the containers of the first node on a Linux bridge. The node's kernel routes their
// packets to hosts outside, and translates the source to the node's address (masquerade). The second
// node is a router, and its containers are the hosts behind it.
type BridgeNAT struct{}

// gatewayNode is the index of the node that is the gateway in placement gateway.
const gatewayNode = 1

func (BridgeNAT) Name() string { return "bridge-nat" }
func (BridgeNAT) About() About {
	return About{
		Title: "the bridge with NAT", Description: "containers on a Linux bridge, whose packets the kernel routes and masquerades, to hosts behind a router",
		Gateway: true, IPv4Only: true, OneLink: true,
	}
}
func (BridgeNAT) Needs() ([]string, []program.Program) {
	return []string{"veth", "bridge"}, []program.Program{iptablesProgram}
}

func (BridgeNAT) Attach(n *Node) error {
	if err := connectRouted(n, n.MTU); err != nil || n.Index == gatewayNode {
		return err
	}
	if err := routeOutside(n); err != nil {
		return err
	}
	inside, _ := routedSubnets(n.Index)
	_, err := n.command("iptables", "-w", "2", "-t", "nat", "-A", "POSTROUTING", "-s", inside.String(), "-o", n.Fabric[0], "-j", "MASQUERADE")
	return err
}

// routeOutside adds the node's route to the hosts behind the gateway.
func routeOutside(n *Node) error {
	outside, _ := routedSubnets(gatewayNode)
	return routeVia(n.Space, n.Underlay[gatewayNode], outside)
}

func (BridgeNAT) Detach(n *Node) error {
	return errors.Join(removeRules(n, nil), disconnectRouted(n), removeRoutes(n))
}

// Changes implements Changer.
func (b BridgeNAT) Changes() map[suite.Change]Change {
	all := routedChanges(b)
	all[suite.ChangePolicies] = iptablesRules(func(*Node) []string { return nil })
	return all
}

func (BridgeNAT) Devices(n *Node) []Device { return Bridge{}.Devices(n) }
