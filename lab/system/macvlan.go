package system

import (
	"errors"

	"github.com/vishvananda/netlink"

	"windtunnel/lab/program"
)

// Macvlan gives each container a macvlan device (bridge mode) on the fabric
// device: switching by the device's own MAC table, without a bridge.
type Macvlan struct{}

func (Macvlan) Name() string { return "macvlan" }
func (Macvlan) About() About {
	return About{Description: "containers on macvlan devices (bridge mode) of the fabric device", OneDevice: true}
}
func (Macvlan) Needs() ([]string, []program.Program) { return []string{"macvlan"}, nil }

func (Macvlan) Attach(n *Node) error {
	parent, err := n.Space.Link(n.Fabric[0])
	if err != nil {
		return err
	}
	for _, e := range n.Endpoints {
		attrs := netlink.NewLinkAttrs()
		attrs.Name, attrs.MTU, attrs.HardwareAddr = EndpointDevice, n.MTU, e.MAC
		attrs.ParentIndex = parent.Attrs().Index
		attrs.Namespace = netlink.NsFd(e.Space.NS)
		if err := n.Space.Add(&netlink.Macvlan{LinkAttrs: attrs, Mode: netlink.MACVLAN_MODE_BRIDGE}); err != nil {
			return err
		}
		if err := bringUp(n, e); err != nil {
			return err
		}
	}
	return nil
}

func (Macvlan) Detach(n *Node) error {
	var errs []error
	for _, e := range n.Endpoints {
		errs = append(errs, e.Space.Remove(EndpointDevice))
	}
	return errors.Join(errs...)
}

func (Macvlan) Devices(n *Node) []Device {
	return hops(n, noVif)
}
