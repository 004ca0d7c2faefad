package system

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"windtunnel/lab/program"
	"windtunnel/lab/suite"
)

// EVPN is a Linux bridge with the kernel's VXLAN device on each node. FRR fills the
// forwarding table of the VXLAN device: bgpd announces the local addresses to the
// other nodes (RFC 7432, RFC 8365). The device learns no addresses from frames.
type EVPN struct{}

func (EVPN) Name() string { return "evpn" }
func (EVPN) About() About {
	return About{
		Description: "containers on a Linux bridge, joined by the kernel's VXLAN device with addresses told by BGP EVPN (FRR)",
		Overhead:    vxlanOverhead,
		SetUp:       2300 * time.Millisecond, // the start of BGP
	}
}

// Needs implements System. FRR's daemons are not in PATH.
func (EVPN) Needs() ([]string, []program.Program) {
	ps := []program.Program{{Name: "vtysh"}, {Name: "unshare", Build: "apt-get install util-linux"}}
	for _, path := range []string{frrZebra, frrBGP} {
		ps = append(ps, program.Program{Name: path, Version: []string{path, "--version"}, Least: frrLeast})
	}
	return []string{"veth", "bridge", "vxlan"}, ps
}

// Attach implements System. It returns when frames for unknown destinations go
// to every other node.
func (e EVPN) Attach(n *Node) error {
	if err := e.bringUp(n); err != nil {
		return err
	}
	return awaitEVPN(n, evpnReady)
}

// bringUp makes the devices and starts the daemons.
func (e EVPN) bringUp(n *Node) error {
	mtu := MTU(e, n.MTU)
	if err := addBridge(n, bridgeDevice, mtu); err != nil {
		return err
	}
	if err := addEVPNTunnel(n, bridgeDevice, vxlanVNI, mtu); err != nil {
		return err
	}
	if err := connectContainers(n, mtu); err != nil {
		return err
	}
	if err := startFRR(n, "", bgpConfig(n.Underlay[n.Index], others(n))); err != nil {
		return err
	}
	return e.announce(n.Endpoints...)
}

// addEVPNTunnel creates the VXLAN device as a port of a bridge. The device and the
// port learn no addresses from frames: BGP provides the addresses behind the tunnel.
// The bridge answers ARP requests for addresses that BGP announced.
func addEVPNTunnel(n *Node, bridge string, vni, mtu int) error {
	if err := addVXLAN(n, bridge, vni, mtu, false); err != nil {
		return err
	}
	l, err := n.Space.Link(vxlanDevice)
	if err != nil {
		return err
	}
	if err := n.Space.Links.LinkSetLearning(l, false); err != nil {
		return fmt.Errorf("turn off learning on %s in %s: %w", vxlanDevice, n.Space.Name, err)
	}
	if err := n.Space.Links.LinkSetBrNeighSuppress(l, true); err != nil {
		return fmt.Errorf("turn on neighbour suppression for %s in %s (needs Linux 4.15): %w", vxlanDevice, n.Space.Name, err)
	}
	return n.Space.Up(vxlanDevice)
}

// announce sends a gratuitous ARP from each container. The bridge learns the
// container's MAC address from this frame, and bgpd announces the address to the
// other nodes.
func (EVPN) announce(es ...Endpoint) error {
	for _, e := range es {
		if err := e.Space.Do(func() error { return gratuitousARP(e.MAC, e.V4.Addr()) }); err != nil {
			return fmt.Errorf("announce container %s: %w", e.Name, err)
		}
	}
	return nil
}

// Changes implements Changer.
func (e EVPN) Changes() map[suite.Change]Change {
	return map[suite.Change]Change{suite.ChangePorts: joins(func(n *Node, c Endpoint) error {
		if err := connectContainer(n, c, MTU(e, n.MTU)); err != nil {
			return err
		}
		return e.announce(c)
	}, removeVif)}
}

// gratuitousARP broadcasts the address of the container's device from the
// namespace of the calling thread (RFC 5227, section 3).
func gratuitousARP(mac net.HardwareAddr, ip netip.Addr) error {
	dev, err := net.InterfaceByName(EndpointDevice)
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	to := &unix.SockaddrLinklayer{Protocol: networkOrder(unix.ETH_P_ARP), Ifindex: dev.Index, Halen: uint8(len(mac))}
	copy(to.Addr[:], broadcastMAC)
	return unix.Sendto(fd, arpAnnouncement(mac, ip), 0, to)
}

var broadcastMAC = net.HardwareAddr{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// arpAnnouncement is an ARP request for the sender's own address (RFC 826):
// Ethernet, IPv4, lengths 6 and 4, operation 1.
func arpAnnouncement(mac net.HardwareAddr, ip netip.Addr) []byte {
	packet := []byte{0, 1, 8, 0, 6, 4, 0, 1}
	packet = append(append(packet, mac...), ip.AsSlice()...)
	return append(append(packet, make([]byte, 6)...), ip.AsSlice()...)
}

// networkOrder converts a number to network byte order. A packet socket needs its
// protocol number in this order.
func networkOrder(v uint16) uint16 {
	return binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, v))
}

// Detach implements System.
func (EVPN) Detach(n *Node) error {
	return errors.Join(n.stopDaemons(), disconnectContainers(n), n.Space.Remove(vxlanDevice), n.Space.Remove(bridgeDevice))
}

// Devices implements System.
func (EVPN) Devices(n *Node) []Device { return VXLAN{}.Devices(n) }
