package system

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/vishvananda/netlink"

	"windtunnel/lab/space"
	"windtunnel/lab/suite"
	"windtunnel/lab/udptun"
)

// UDPTun is an overlay in user space. Each node has a TUN device and a program that
// sends the device's packets in UDP datagrams. Flannel's udp backend and Weave's
// sleeve work in the same way.
type UDPTun struct {
	// Batch makes the tunnel carry several datagrams with one system call. Flannel
	// and Weave do not.
	Batch bool
}

const (
	udpTunDevice = "tun0"
	udpTunPort   = 8285 // as in flannel's udp backend
	udpTunBatch  = 64
)

func (u UDPTun) Name() string {
	if u.Batch {
		return "udp-tun-batch"
	}
	return "udp-tun"
}

// SetUp returns the time for the start of its tunnels.
func (UDPTun) SetUp() time.Duration { return 200 * time.Millisecond }

func (u UDPTun) Describe() string {
	how := "one packet a system call"
	if u.Batch {
		how = fmt.Sprintf("up to %d packets a system call of the socket", udpTunBatch)
	}
	return "containers routed through a UDP tunnel in user space (TUN device), " + how
}

func (UDPTun) Features() []string { return []string{"veth", "bridge", "tun"} }
func (UDPTun) MTU(fabric int) int { return fabric - udptun.Overhead }
func (UDPTun) OnNode() bool       { return false }

// PlugsTaps: workloads are behind a bridge, so they may be VMs.
func (UDPTun) PlugsTaps()                                   {}
func (UDPTun) Supports(suite.Placement, suite.Fabric) error { return nil }

func (u UDPTun) Attach(n *Node) error {
	if err := connectRouted(n, u.MTU(n.MTU)); err != nil {
		return err
	}
	argv, err := u.argv(n)
	if err != nil {
		return err
	}
	tunnel := daemon{name: "udp-tun", argv: argv, ready: func() error { return logContains(n, "udp-tun", udptun.Ready) }}
	if err := n.start(tunnel); err != nil {
		return err
	}
	return routeInto(n, udpTunDevice, u.MTU(n.MTU))
}

// argv returns the command line of the tunnel, which is a command of the windtunnel
// program.
func (u UDPTun) argv(n *Node) ([]string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find the windtunnel program for the tunnel: %w", err)
	}
	argv := []string{self, udptun.Name, "--device", udpTunDevice, "--listen", netip.AddrPortFrom(n.Underlay[n.Index], udpTunPort).String()}
	if u.Batch {
		argv = append(argv, "--batch", strconv.Itoa(udpTunBatch))
	}
	for i, peer := range n.peers() {
		v4, v6 := routedSubnets(i)
		for _, subnet := range []netip.Prefix{v4, v6} {
			argv = append(argv, "--route", udptun.Route{To: subnet, Peer: netip.AddrPortFrom(peer, udpTunPort)}.String())
		}
	}
	return argv, nil
}

// logContains returns nil if the log of a daemon contains the text.
func logContains(n *Node, name, text string) error {
	log, err := os.ReadFile(filepath.Join(space.Home(n.Name), name+".log"))
	if err != nil {
		return err
	}
	if !strings.Contains(string(log), text) {
		return fmt.Errorf("%s has not printed %s", name, text)
	}
	return nil
}

// routeInto sets a tunnel device of layer 3 up, and adds routes over it to the
// subnets of all other nodes.
func routeInto(n *Node, device string, mtu int) error {
	l, err := n.Space.Link(device)
	if err != nil {
		return err
	}
	if err := n.Space.Links.LinkSetMTU(l, mtu); err != nil {
		return fmt.Errorf("set the MTU of %s to %d in %s: %w", device, mtu, n.Space.Name, err)
	}
	// The device needs no link-local address. With one, IPv6 would send queries that
	// have no receiver.
	if err := n.Space.DeviceSysctl("ipv6", device, "addr_gen_mode", "1"); err != nil {
		return err
	}
	if err := n.Space.Up(device); err != nil {
		return err
	}
	for i := range n.peers() {
		v4, v6 := routedSubnets(i)
		for _, subnet := range []netip.Prefix{v4, v6} {
			r := &netlink.Route{LinkIndex: l.Attrs().Index, Dst: space.IPNet(subnet)}
			if err := n.Space.Links.RouteAdd(r); err != nil {
				return fmt.Errorf("route %s into %s in %s: %w", subnet, device, n.Space.Name, err)
			}
		}
	}
	return nil
}

// Detach ends the program, which also removes its device.
func (UDPTun) Detach(n *Node) error {
	return errors.Join(n.stopDaemons(), disconnectRouted(n))
}

func (UDPTun) Devices(n *Node) []Device { return routedDevices(n, udpTunDevice) }

// routedDevices returns the devices of a routed system with a tunnel, in path order.
func routedDevices(n *Node, tunnel string) []Device {
	ds := append(containerDevices(n), Device{Name: bridgeDevice, Role: "bridge"}, Device{Name: tunnel, Role: "tunnel"})
	return append(ds, fabricDevices(n)...)
}
