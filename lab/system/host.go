package system

import (
	"errors"

	"windtunnel/lab/suite"
)

// Host is the baseline in a Kubernetes cluster: pods on the host network of their nodes, so
// the tools use the nodes' own stacks.
type Host struct{}

// InCluster reports whether a system is part of a Kubernetes cluster, and runs only there.
// Such a system has a method InCluster.
func InCluster(s System) bool {
	_, in := s.(interface{ InCluster() })
	return in
}

// InCluster marks the systems.
func (Host) InCluster()      {}
func (CNI) InCluster()       {}
func (ServiceIP) InCluster() {}

func (Host) Name() string       { return "host" }
func (Host) Title() string      { return "the host network" }
func (Host) Describe() string   { return "pods on the host network of the nodes of a Kubernetes cluster" }
func (Host) Features() []string { return nil }
func (Host) MTU(fabric int) int { return fabric }
func (Host) OnNode() bool       { return true }
func (Host) Attach(*Node) error { return nil }
func (Host) Detach(*Node) error { return nil }

func (Host) Supports(p suite.Placement, _ suite.Fabric) error {
	if p == suite.Colocated {
		return errors.New("host does not support placement colocated: two sockets of one host use the loopback device, which is not the network under test")
	}
	return nil
}

func (Host) Devices(n *Node) []Device { return fabricDevices(n) }
