package system

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
)

// Guest describes an endpoint that is a VM. Such an endpoint has no namespace on the
// node. The system connects the VM's tap and sets Config. The node's agent boots the
// VM and applies Config to the device in the guest.
type Guest struct {
	Queues int // queues of the tap in each direction, ≥ 1
	Config GuestConfig
}

// GuestConfig has the settings of the network device in a guest.
type GuestConfig struct {
	MTU       int
	Addresses []netip.Prefix
	Gateways  []netip.Addr // gateways of default routes
}

// Tap returns the name of a VM's tap on the node. The vif of a container has the
// same name.
func (e Endpoint) Tap() string { return vifName(e) }

// connectTap connects a VM's tap to the node's bridge.
func connectTap(n *Node, e Endpoint, mtu int) error {
	if err := makeTap(n, e, mtu); err != nil {
		return err
	}
	if err := n.Space.Enslave(e.Tap(), bridgeDevice); err != nil {
		return err
	}
	e.Guest.Config = GuestConfig{MTU: mtu, Addresses: []netip.Prefix{e.V4, e.V6}}
	return nil
}

// makeTap creates a persistent tap and sets it up.
func makeTap(n *Node, e Endpoint, mtu int) error {
	name := e.Tap()
	if err := n.Space.Do(func() error { return openTap(name, e.Guest.Queues > 1) }); err != nil {
		return fmt.Errorf("create tap %s in %s: %w (if the device /dev/net/tun is missing: modprobe tun)", name, n.Space.Name, err)
	}
	l, err := n.Space.Link(name)
	if err != nil {
		return err
	}
	if err := n.Space.Links.LinkSetMTU(l, mtu); err != nil {
		return fmt.Errorf("set the MTU of tap %s in %s to %d: %w", name, n.Space.Name, mtu, err)
	}
	if err := n.Space.DeviceSysctl("ipv6", name, "disable_ipv6", "1"); err != nil {
		return err
	}
	return n.Space.Up(name)
}

// SteerTap steers the receive work of a VM's tap; see steer. The VM must run: a tap has its queues
// only while a process holds them open.
func SteerTap(n *Node, e Endpoint) error { return steer(n, n.Space, e.Tap(), e.Guest.Queues) }

// openTap creates a tap with the options that QEMU uses: a header before each frame
// describes superframes and missing checksums (IFF_VNET_HDR; Linux's
// Documentation/networking/tuntap.rst).
func openTap(name string, queues bool) error {
	tap := &netlink.Tuntap{
		LinkAttrs: netlink.LinkAttrs{Name: name},
		Mode:      netlink.TUNTAP_MODE_TAP,
		Flags:     netlink.TUNTAP_NO_PI | netlink.TUNTAP_VNET_HDR,
	}
	if queues {
		tap.Flags |= netlink.TUNTAP_MULTI_QUEUE
	}
	return netlink.LinkAdd(tap)
}

func removeTaps(n *Node) error {
	var errs []error
	for _, e := range n.Endpoints {
		if e.Guest != nil {
			errs = append(errs, n.Space.Remove(e.Tap()))
		}
	}
	return errors.Join(errs...)
}
