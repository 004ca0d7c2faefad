package system

import (
	"errors"
	"fmt"
	"slices"

	"windtunnel/internal/lists"
	"windtunnel/lab/space"
)

func vifName(e Endpoint) string { return "vif" + e.Name }

// connectContainers gives every container a device, and connects the other end, the vif,
// to the node's bridge. For a VM it connects the VM's tap.
func connectContainers(n *Node, mtu int) error {
	for _, e := range n.Endpoints {
		if err := connectContainer(n, e, mtu); err != nil {
			return err
		}
	}
	return nil
}

func connectContainer(n *Node, e Endpoint, mtu int) error {
	if e.Guest != nil {
		return connectTap(n, e, mtu)
	}
	if err := addVif(n, e, mtu); err != nil {
		return err
	}
	if err := n.Space.Enslave(vifName(e), bridgeDevice); err != nil {
		return err
	}
	return bringUp(n, e)
}

// addVif creates a veth pair and sets it up: the container's device, and the vif as
// the other end on the node.
func addVif(n *Node, e Endpoint, mtu int) error {
	pair := space.Veth{Name: vifName(e), PeerName: EndpointDevice, PeerMAC: e.MAC, MTU: mtu}
	if err := n.Space.Pair(pair, e.Space); err != nil {
		return err
	}
	if err := n.Space.DeviceSysctl("ipv6", vifName(e), "disable_ipv6", "1"); err != nil {
		return err
	}
	if err := n.Space.Up(vifName(e)); err != nil {
		return err
	}
	return steer(n, n.Space, vifName(e), 1)
}

// userspaceOffloads turns off all transmit offloads of a container's device. This is necessary if
// a program on the node reads the container's frames from a packet socket: with offloads the
// frames would be superframes without checksums.
var userspaceOffloads = map[string]bool{
	"tx-checksum-ip-generic": false, "tx-checksum-sctp": false,
	"tx-tcp-segmentation": false, "tx-tcp6-segmentation": false, "tx-tcp-ecn-segmentation": false, "tx-tcp-mangleid-segmentation": false,
	"tx-generic-segmentation": false, "tx-udp-segmentation": false, "tx-sctp-segmentation": false,
}

// bringUp steers the receive work of a container's device, sets the device up and
// adds its addresses.
func bringUp(n *Node, e Endpoint) error {
	if err := steer(n, e.Space, EndpointDevice, 1); err != nil {
		return err
	}
	if err := e.Space.DeviceSysctl("ipv6", EndpointDevice, "accept_ra", "0"); err != nil {
		return err
	}
	if err := e.Space.Up(EndpointDevice); err != nil {
		return err
	}
	if err := e.Space.Connect(EndpointDevice, e.V4); err != nil {
		return err
	}
	return e.Space.Connect(EndpointDevice, e.V6)
}

// steer distributes the receive work of a device's queues to the node's CPUs, if the fabric needs
// steering.
func steer(n *Node, s *space.Space, device string, queues int) error {
	if !n.Steer {
		return nil
	}
	if err := s.SteerReceive(device, queues, n.CPUs); err != nil {
		return fmt.Errorf("steer receive work to the node's CPUs: %w", err)
	}
	return nil
}

func disconnectContainers(n *Node) error {
	return errors.Join(lists.Map(n.containers(), func(e Endpoint) error { return removeVif(n, e) })...)
}

// hops lists the devices on the path: those inside the containers, each with its other end on the
// node, then others, and the NICs. vif returns the name of the other end; "" if there is none.
func hops(n *Node, vif func(e Endpoint) string, others ...Device) []Device {
	var ds []Device
	for _, e := range n.Endpoints {
		ds = append(ds, Device{Endpoint: e.Name, Name: EndpointDevice, Role: "endpoint"})
		if name := vif(e); name != "" {
			ds = append(ds, Device{Name: name, Role: "vif"})
		}
	}
	return slices.Concat(ds, others, fabricDevices(n))
}

// bridgeHop is the node's bridge.
var bridgeHop = Device{Name: bridgeDevice, Role: "bridge"}

func tunnelHop(device string) Device { return Device{Name: device, Role: "tunnel"} }

// noVif is for systems whose containers have no other ends on the node.
func noVif(Endpoint) string { return "" }

// foundVif returns the other end of the endpoint's device, for systems that choose its name. It
// returns "" before Attach has succeeded.
func (n *Node) foundVif(e Endpoint) string {
	name, _ := vifOf(n, e)
	return name
}

// vifOf returns the name of the node's device whose other end is the endpoint's
// device.
func vifOf(n *Node, e Endpoint) (string, error) {
	if e.Guest != nil {
		return e.Tap(), nil
	}
	inside, err := e.Space.Link(EndpointDevice)
	if err != nil {
		return "", err
	}
	vif, err := n.Space.Links.LinkByIndex(inside.Attrs().ParentIndex)
	if err != nil {
		return "", fmt.Errorf("find the other end of %s of %s in %s: %w", EndpointDevice, e.Name, n.Space.Name, err)
	}
	return vif.Attrs().Name, nil
}
