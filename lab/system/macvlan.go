package system

import (
	"errors"

	"github.com/vishvananda/netlink"

	"windtunnel/internal/lists"
	"windtunnel/lab/program"
	"windtunnel/lab/suite"
)

// Macvlan gives each container a macvlan device (bridge mode) on the fabric
// device: switching by the device's own MAC table, without a bridge.
type Macvlan struct{}

func (Macvlan) Name() string { return "macvlan" }
func (Macvlan) About() About {
	return About{Description: "containers on macvlan devices (bridge mode) of the fabric device", OneDevice: true}
}
func (Macvlan) Needs() ([]string, []program.Program) { return []string{"macvlan"}, nil }

func (m Macvlan) Attach(n *Node) error {
	for _, e := range n.Endpoints {
		if err := m.connect(n, e); err != nil {
			return err
		}
	}
	return nil
}

func (Macvlan) connect(n *Node, e Endpoint) error {
	parent, err := n.Space.Link(n.Fabric[0])
	if err != nil {
		return err
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU, attrs.HardwareAddr = EndpointDevice, n.MTU, e.MAC
	attrs.ParentIndex = parent.Attrs().Index
	attrs.Namespace = netlink.NsFd(e.Space.NS)
	if err := n.Space.Add(&netlink.Macvlan{LinkAttrs: attrs, Mode: netlink.MACVLAN_MODE_BRIDGE}); err != nil {
		return err
	}
	return bringUp(n, e)
}

func (Macvlan) disconnect(_ *Node, e Endpoint) error { return e.Space.Remove(EndpointDevice) }

func (m Macvlan) Detach(n *Node) error {
	return errors.Join(lists.Map(n.containers(), func(e Endpoint) error { return m.disconnect(n, e) })...)
}

// Changes implements Changer.
func (m Macvlan) Changes() map[suite.Change]Change {
	return map[suite.Change]Change{suite.ChangePorts: joins(m.connect, m.disconnect)}
}

func (Macvlan) Devices(n *Node) []Device {
	return hops(n, noVif)
}
