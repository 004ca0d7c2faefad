package system

import (
	"strconv"

	"windtunnel/lab/program"
	"windtunnel/lab/space"
)

// CNI is the network of a Kubernetes cluster's pods, as its CNI plugin made it. The
// executor makes the pods.
type CNI struct{}

func (CNI) Name() string { return "cni" }
func (CNI) About() About {
	return About{Title: "the pod network", Description: "pods on the pod network of a Kubernetes cluster", InCluster: true} // the engine uses the MTU of the pods' devices
}
func (CNI) Needs() ([]string, []program.Program) { return nil, nil }
func (CNI) Detach(*Node) error                   { return nil }

// Attach records the devices of the node's pods.
func (CNI) Attach(n *Node) error {
	for _, e := range n.Endpoints {
		l, err := e.Space.Link(EndpointDevice)
		if err != nil {
			return err
		}
		e.Space.Note(EndpointDevice+" MTU", strconv.Itoa(l.Attrs().MTU))
		e.Space.Note(EndpointDevice+" kind", l.Type())
		on, err := e.Space.OffloadsOn(EndpointDevice)
		if err != nil {
			return err
		}
		set := space.Settings{Offloads: map[string]string{}}
		for _, feature := range on {
			set.Offloads[EndpointDevice+" "+feature] = "on"
		}
		e.Space.Include("", set)
	}
	return nil
}

// Devices lists the pods' devices, their other ends if they are pairs, and the node's NIC.
func (CNI) Devices(n *Node) []Device {
	return hops(n, func(e Endpoint) string { return pairOf(n, e) })
}

// pairOf returns the name of the node's device that is the other end of the endpoint's
// device; "" if the endpoint's device is not one end of a pair.
func pairOf(n *Node, e Endpoint) string {
	l, err := e.Space.Link(EndpointDevice)
	if err != nil || l.Type() != "veth" && l.Type() != "netkit" {
		return ""
	}
	return n.foundVif(e) // "" if the other end is in another namespace
}
