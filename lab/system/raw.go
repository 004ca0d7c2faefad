package system

import (
	"windtunnel/internal/lists"
	"windtunnel/lab/program"
)

// Raw has no virtual network: the tools use the nodes' own stacks, directly over the
// fabric.
type Raw struct{}

// loopbackOnly is why systems whose endpoints are the nodes need two nodes.
const loopbackOnly = "two sockets of one host use the loopback device, which is not the network under test"

func (Raw) Name() string { return "raw" }
func (Raw) About() About {
	return About{Title: "raw", Description: "host stack to host stack over the fabric, no virtual network", OnNode: true, NotColocated: loopbackOnly}
}
func (Raw) Needs() ([]string, []program.Program) { return nil, nil }
func (Raw) Attach(*Node) error                   { return nil }
func (Raw) Detach(*Node) error                   { return nil }

func (Raw) Devices(n *Node) []Device { return fabricDevices(n) }

// fabricDevices returns the node's NICs. If they are bonded, it returns the NICs
// below the bond.
func fabricDevices(n *Node) []Device {
	nics := n.Fabric
	if len(n.Team) > 0 {
		nics = n.Team
	}
	return lists.Map(nics, func(f string) Device { return Device{Name: f, Role: "fabric"} })
}
