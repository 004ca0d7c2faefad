package system

import (
	"errors"
	"fmt"
	"strings"

	"windtunnel/lab/suite"
)

// SupportsEndpoint returns nil, or the reason why a system over this fabric cannot
// have endpoints with such settings.
func SupportsEndpoint(s System, e suite.Endpoint, f suite.Fabric) error {
	if s.OnNode() && (e.Kind != suite.Container || e.Spread || e.NoSegmentation) {
		return fmt.Errorf("%s has no endpoints of its own: its tools run on the nodes, so an endpoint %s is not possible; use a system with containers", s.Name(), e)
	}
	if e.Kind == suite.Container && e.Spread && f.Kind == suite.Veth {
		return errors.New("a plain veth pair has all receive work spread over the node's CPUs already, so spread has no effect; use `kind: wire`")
	}
	return nil
}

// SetEndpoints applies an endpoint's settings to the containers' devices, which the
// system has connected. A VM gets its settings in the guest.
func SetEndpoints(n *Node, e suite.Endpoint) error {
	if e.Kind != suite.Container {
		return nil
	}
	for _, c := range n.Endpoints {
		if e.Spread {
			if err := c.spread(n.CPUs); err != nil {
				return fmt.Errorf("spread the receive work of %s over CPUs %v: %w", c.Name, n.CPUs, err)
			}
		}
		if e.NoSegmentation {
			if err := c.cut(); err != nil {
				return fmt.Errorf("turn off the send offload of %s: %w", c.Name, err)
			}
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

// cut turns off every kind of segmentation offload of the container's device. TCP
// still makes superframes (Linux 4.17 and later). The container's transmit path then
// segments them before the device (validate_xmit_skb). The vif is unchanged: the
// container receives what the vif sends.
func (c Endpoint) cut() error {
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
