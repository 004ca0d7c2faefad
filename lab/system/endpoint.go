package system

import (
	"errors"
	"fmt"
	"strings"

	"windtunnel/lab/suite"
)

// SupportsEndpoint returns nil if a system supports the endpoint settings on this
// fabric, else the reason.
func SupportsEndpoint(s System, e suite.Endpoint, f suite.Fabric) error {
	about := s.About()
	if about.OnNode && (e.Kind != suite.Container || e.Spread || e.NoSegmentation || e.HostVNIC) {
		return fmt.Errorf("%s has neither containers nor VMs: its tools run on the nodes, so it does not support the endpoint %s; use a system with containers", s.Name(), e)
	}
	if e.Kind == suite.VM && !about.VMs {
		return fmt.Errorf("%s cannot have VMs as endpoints: it configures the workloads' network devices, which it cannot reach inside a VM; use containers, or a system with a bridge or with vrouter", s.Name())
	}
	if e.HostVNIC && !about.HostVNIC {
		return fmt.Errorf("%s gives the nodes themselves no virtual NIC; use the system bridge, or remove host_vnic", s.Name())
	}
	if e.Kind == suite.Container && e.Spread && f.Kind == suite.Veth {
		return errors.New("on a fabric of `kind: veth` all receive work is spread over the node's CPUs already, so spread has no effect; use `kind: wire`")
	}
	return nil
}

// SetEndpoints applies the endpoint settings to the devices of the node's
// containers. The system must have connected the containers. For VMs, ConfigureGuest
// applies the settings.
func SetEndpoints(n *Node, e suite.Endpoint) error {
	if e.Kind != suite.Container {
		return nil
	}
	for _, c := range n.Endpoints {
		if err := c.set(e, n.CPUs); err != nil {
			return err
		}
	}
	return nil
}

// set applies the suite's endpoint settings to the endpoint's device, whose receive work the CPUs
// share.
func (c Endpoint) set(e suite.Endpoint, cpus []int) error {
	if e.Spread {
		if err := c.spread(cpus); err != nil {
			return fmt.Errorf("spread the receive work of %s over CPUs %v: %w", c.Name, cpus, err)
		}
	}
	if e.NoSegmentation {
		if err := c.disableSegmentation(); err != nil {
			return fmt.Errorf("turn off segmentation by the device of %s: %w", c.Name, err)
		}
	}
	return nil
}

// spread divides the container's receive work among the CPUs by flow (RPS).
func (c Endpoint) spread(cpus []int) error {
	l, err := c.Space.Link(EndpointDevice)
	if err != nil {
		return err
	}
	return c.Space.SteerReceive(EndpointDevice, l.Attrs().NumRxQueues, cpus)
}

// disableSegmentation turns off all segmentation offloads of the container's device.
// TCP still builds superframes (Linux 4.17 and later). The container's transmit path
// segments them in software before the device (validate_xmit_skb). The vif keeps its
// offloads, so the container can still receive superframes.
func (c Endpoint) disableSegmentation() error {
	on, err := c.Space.OffloadsOn(EndpointDevice)
	if err != nil {
		return err
	}
	off := map[string]bool{}
	for _, f := range on {
		if strings.HasPrefix(f, "tx-") && strings.HasSuffix(f, "-segmentation") {
			off[f] = false
		}
	}
	return c.Space.Offloads(EndpointDevice, off)
}
