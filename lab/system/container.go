package system

import (
	"errors"
	"fmt"

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
	return steer(n, n.Space, vifName(e))
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
	if err := steer(n, e.Space, EndpointDevice); err != nil {
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

func steer(n *Node, s *space.Space, device string) error {
	if !n.Steer {
		return nil
	}
	if err := s.SteerReceive(device, 1, n.CPUs); err != nil {
		return fmt.Errorf("steer receive work to the node's CPUs: %w", err)
	}
	return nil
}

func disconnectContainers(n *Node) error {
	var errs []error
	for _, e := range n.Endpoints {
		errs = append(errs, n.Space.Remove(vifName(e)))
	}
	return errors.Join(errs...)
}

func containerDevices(n *Node) []Device {
	var ds []Device
	for _, e := range n.Endpoints {
		ds = append(ds,
			Device{Endpoint: e.Name, Name: EndpointDevice, Role: "endpoint"},
			Device{Name: vifName(e), Role: "vif"})
	}
	return ds
}

// endpointDevices lists the devices inside the containers.
func endpointDevices(n *Node) []Device {
	var ds []Device
	for _, e := range n.Endpoints {
		ds = append(ds, Device{Endpoint: e.Name, Name: EndpointDevice, Role: "endpoint"})
	}
	return ds
}

// connectedDevices lists the devices inside the containers and their other ends. It is
// for systems that choose the name of the other end.
func connectedDevices(n *Node) []Device {
	var ds []Device
	for _, e := range n.Endpoints {
		ds = append(ds, Device{Endpoint: e.Name, Name: EndpointDevice, Role: "endpoint"})
		if vif, err := vifOf(n, e); err == nil { // the vif exists after Attach has succeeded
			ds = append(ds, Device{Name: vif, Role: "vif"})
		}
	}
	return ds
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
