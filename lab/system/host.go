package system

import (
	"windtunnel/lab/program"
)

// Host is the baseline in a Kubernetes cluster: pods on the host network of their nodes, so
// the tools use the nodes' own stacks.
type Host struct{}

func (Host) Name() string { return "host" }
func (Host) About() About {
	return About{
		Title: "the host network", Description: "pods on the host network of the nodes of a Kubernetes cluster",
		OnNode: true, InCluster: true, NotColocated: loopbackOnly,
	}
}
func (Host) Needs() ([]string, []program.Program) { return nil, nil }
func (Host) Attach(*Node) error                   { return nil }
func (Host) Detach(*Node) error                   { return nil }

func (Host) Devices(n *Node) []Device { return fabricDevices(n) }
