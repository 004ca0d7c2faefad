package system

import (
	"errors"

	"windtunnel/lab/program"
	"windtunnel/lab/suite"
)

// Host is the baseline in a Kubernetes cluster: pods on the host network of their nodes, so
// the tools use the nodes' own stacks.
type Host struct{}

func (Host) Name() string { return "host" }
func (Host) About() About {
	return About{
		Title: "the host network", Description: "pods on the host network of the nodes of a Kubernetes cluster",
		OnNode: true, InCluster: true,
	}
}
func (Host) Needs() ([]string, []program.Program) { return nil, nil }
func (Host) MTU(fabric int) int                   { return fabric }
func (Host) Attach(*Node) error                   { return nil }
func (Host) Detach(*Node) error                   { return nil }

func (Host) Supports(p suite.Placement, _ suite.Fabric) error {
	if p == suite.Colocated {
		return errors.New("host does not support placement colocated: two sockets of one host use the loopback device, which is not the network under test")
	}
	return nil
}

func (Host) Devices(n *Node) []Device { return fabricDevices(n) }
