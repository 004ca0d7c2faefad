package netdev

import (
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"windtunnel/vrouter/agent/config"
	"windtunnel/vrouter/model"
)

// Wire connects workloads to the node during one pass. For a port with a network
// namespace it creates a pair of devices; a port with a device uses the existing device.
type Wire struct {
	own     *nsCache
	node    string
	kind    config.WorkloadDevice   // kind of new pairs
	opened  map[string]*nsCache     // workloads' namespaces that this pass has opened
	Fabric  map[string]bool         // underlay devices, which ports must not use
	made    map[string]bool         // ports whose pair was created in this pass
	Big     bool                    // superpackets of BigSuperpacket bytes are allowed
	changed func(port, what string) // called for each change
	Checked func(port string) bool  // reports whether the sysctls of a port's device need no check; nil: of no port
	Limited func(port string) bool  // reports whether an earlier pass may have set bandwidth limits on a port; nil: on every port
}

// Device is a port's device on the node.
type Device struct {
	Link netlink.Link
	Peer bool // a veth or netkit device whose peer is in another namespace: bpf_redirect_peer can be used
}

// DeviceOf returns the device of a port. With an ingress limit, packets must pass the
// device's queue, so peer is false.
func DeviceOf(l netlink.Link, p model.Port) *Device {
	return &Device{l, isPair(l) && l.Attrs().NetNsID >= 0 && p.Bandwidth.Ingress == 0}
}

// isPair reports whether a device is one end of a pair that the agent can make.
func isPair(l netlink.Link) bool {
	return l.Type() == string(config.Veth) || l.Type() == string(config.Netkit)
}

// IsNetkit reports whether the device is the primary of a netkit pair. The kernel attaches
// the programs of both ends through the primary, and refuses the peer.
func (d Device) IsNetkit() bool {
	l, ok := d.Link.(*netlink.Netkit)
	return ok && l.IsPrimary()
}

// Index returns the ifindex.
func (d Device) Index() int { return d.Link.Attrs().Index }

// HostPrefix begins the name of the node's end of a pair.
const HostPrefix = "vr-"

// ownPrefix begins the name of a device that connects the node itself to a network.
const ownPrefix = "vrh-"

// NewWire makes the wire of a pass. here are the node's devices.
func NewWire(here *Devices, node string, c config.Config, changed func(port, what string)) *Wire {
	w := &Wire{
		own: &nsCache{Space: here.space, devices: here}, node: node, kind: c.WorkloadDevice, changed: changed,
		opened: map[string]*nsCache{}, Fabric: map[string]bool{}, made: map[string]bool{},
	}
	for _, f := range c.Fabric {
		w.Fabric[f] = true
	}
	return w
}

// Close closes the workloads' namespaces.
func (w *Wire) Close() {
	for _, s := range w.opened {
		s.Close()
	}
}

// namespace opens a workload's namespace once per pass.
func (w *Wire) namespace(name string) (*nsCache, error) {
	if s, ok := w.opened[name]; ok {
		return s, nil
	}
	s, err := OpenWorkload(name, w.own.Space)
	if err != nil {
		return nil, err
	}
	s.home = w.own.home
	opened := &nsCache{Space: s, devices: NewDevices(s)}
	if w.own.devices.listed { // this pass looks at all ports
		if err := opened.devices.List(); err != nil {
			s.Close()
			return nil, fmt.Errorf("open network namespace %s: %w", name, err)
		}
	}
	w.opened[name] = opened
	return opened, nil
}

// namespaceOf returns the namespace of a port's workload. For a port that connects the
// node itself, this is the node's namespace.
func (w *Wire) namespaceOf(p model.Port) (*nsCache, error) {
	if p.Attach.Host {
		return w.own, nil
	}
	return w.namespace(p.Attach.Netns)
}

// describeNamespace describes a port's namespace in errors.
func describeNamespace(p model.Port) string {
	if p.Attach.Host {
		return "the node"
	}
	return "network namespace " + p.Attach.Netns
}

// hostName returns the name of the node's end of a port's pair. A restart does
// not change the name. It is a hash, because a device name has at most 15 characters.
func hostName(node, port string) string {
	sum := sha256.Sum256([]byte(node + "\x00" + port))
	text := base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:])
	return HostPrefix + strings.ToLower(text[:15-len(HostPrefix)])
}

// alias returns the alias of a port's pair. `ip link` shows it, and the agent
// finds the pair by it after a crash. It contains the network: a port that moves to
// another network gets a new pair, without the old addresses.
func alias(node string, p model.Port) string {
	return fmt.Sprintf("vrouter node %s port %s network %s", node, p.Name, p.Network)
}

// PortOf parses an alias. Names contain no spaces.
func PortOf(node, alias string) (port string, ours bool) {
	words := strings.Fields(alias)
	if len(words) != 7 || words[0] != "vrouter" || words[2] != node {
		return "", false
	}
	return words[4], true
}

// Connect finds or creates a port's device. If the device exists but cannot be
// configured, connect returns both the device and an error.
func (w *Wire) Connect(p model.Port) (*Device, error) {
	switch {
	case p.Attach.Device != "":
		return w.existing(p)
	case p.Attach.Netns == "" && !p.Attach.Host:
		return nil, nil // not attached yet
	}
	name := hostName(w.node, p.Name)
	space, err := w.namespaceOf(p)
	if err != nil {
		if l, _ := w.own.devices.Name(name); l != nil {
			return DeviceOf(l, p), err
		}
		return nil, err
	}
	l, err := w.own.devices.Name(name)
	if err != nil {
		return nil, err
	}
	if l != nil && !(w.isOurs(l, p) && w.joins(l, space)) {
		if err := w.Remove(l); err != nil {
			return nil, err
		}
		w.changed(p.Name, "device pair "+name+" removed: its other end is not in the port's namespace")
		l = nil
	}
	if l == nil {
		if l, err = w.makePair(p, name, space); err != nil {
			return nil, err
		}
	}
	return DeviceOf(l, p), w.nodeEnd(p, l)
}

// existing finds the existing device of a port.
func (w *Wire) existing(p model.Port) (*Device, error) {
	name := p.Attach.Device
	l, err := w.own.devices.Name(name)
	switch {
	case err != nil:
		return nil, err
	case w.Fabric[name]:
		return nil, fmt.Errorf("device %s is an underlay device of the node; choose another device", name)
	case l == nil:
		return nil, fmt.Errorf("connect device %s: it does not exist on the node; create it, or correct attach.device", name)
	}
	if why, err := w.hostUse(l); err != nil || why != "" {
		return nil, cmp.Or(err, fmt.Errorf("connect device %s: the node uses it (it %s); set attach.device to a tap or another device without addresses", name, why))
	}
	return DeviceOf(l, p), nil
}

// hostUse returns a text if the node itself uses a device; "": it does not. Such a
// device cannot be a port, because a port takes all packets that its device receives.
func (w *Wire) hostUse(l netlink.Link) (string, error) {
	if l.Attrs().MasterIndex != 0 {
		return "belongs to another device, such as a bridge", nil
	}
	all, err := w.own.addressesOf(l)
	if err != nil {
		return "", err
	}
	for _, a := range all {
		if !a.Addr().IsLinkLocalUnicast() {
			return "has the address " + a.Addr().String(), nil
		}
	}
	return "", nil
}

// isOurs tells whether a pair is this port's. One without a mark is: its maker
// was ended before it could put the mark there.
func (w *Wire) isOurs(l netlink.Link, p model.Port) bool {
	mark := l.Attrs().Alias
	return mark == "" || mark == alias(w.node, p)
}

// joins reports whether a pair's other end is in a namespace.
func (w *Wire) joins(l netlink.Link, space *nsCache) bool {
	if !isPair(l) || l.Attrs().NetNsID != space.idIn(w.own) || l.Attrs().NetNsID < 0 && space != w.own {
		return false
	}
	peer, err := space.devices.Index(l.Attrs().ParentIndex)
	return err == nil && peer != nil && peer.Type() == l.Type() && peer.Attrs().ParentIndex == l.Attrs().Index
}

func (w *Wire) makePair(p model.Port, name string, space *nsCache) (netlink.Link, error) {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = name, HostMTU
	inside := InterfaceOf(p)
	err := w.own.Links.LinkAdd(newPair(w.kind, attrs, inside, p.MAC[:], netlink.NsFd(space.Ns)))
	if errors.Is(err, unix.EEXIST) {
		return nil, fmt.Errorf("%s has a device %s already; choose another attach.interface, or delete that device", describeNamespace(p), inside)
	}
	if err != nil {
		return nil, fmt.Errorf("create the %s pair %s, %s in %s: %w", w.kind, name, inside, describeNamespace(p), err)
	}
	l, err := w.own.Links.LinkByName(name)
	if err == nil {
		w.own.devices.put(l)
		_, err = space.devices.Renew(l.Attrs().ParentIndex)
	}
	if err != nil {
		return nil, fmt.Errorf("find the new device %s: %w", name, err)
	}
	w.made[p.Name] = true
	w.changed(p.Name, string(w.kind)+" pair created: "+name+" on the node, "+inside+" in "+describeNamespace(p))
	return l, nil
}

// nodeEnd configures the node's end of a pair. IPv6 is off, so that the node does
// not send its own IPv6 packets into the workload's network. A new device also ignores router
// advertisements, so that they have no effect if IPv6 is turned on later.
func (w *Wire) nodeEnd(p model.Port, l netlink.Link) error {
	name, settings := l.Attrs().Name, []Setting{{"disable_ipv6", "1"}}
	if want := alias(w.node, p); l.Attrs().Alias != want {
		if err := w.own.Links.LinkSetAlias(l, want); err != nil {
			return fmt.Errorf("set the alias of device %s: %w", name, err)
		}
		l.Attrs().Alias = want
		w.changed(p.Name, "device "+name+" marked as its own")
		settings = append(settings, Setting{"accept_ra", "0"})
	} else if w.Checked != nil && w.Checked(p.Name) {
		return nil
	}
	return w.own.Sysctls("ipv6", name, settings...)
}

// Remove deletes a device of the node.
func (w *Wire) Remove(l netlink.Link) error {
	name := l.Attrs().Name
	w.own.devices.forget(l)
	err := w.own.Links.LinkDel(l)
	if err != nil && !errors.Is(err, unix.ENODEV) && !errors.Is(err, unix.EINVAL) { // already deleted
		return fmt.Errorf("delete device %s: %w", name, err)
	}
	return nil
}

// Strays returns the device pairs of ports that are not wanted. used has the ifindexes of devices
// that are in use, which Strays does not check.
func (w *Wire) Strays(used map[int]bool, isWanted func(port string) bool) []netlink.Link {
	var all []netlink.Link
	for index, l := range w.own.devices.byIndex {
		if used[index] {
			continue
		}
		if port, ours := PortOf(w.node, l.Attrs().Alias); ours && !isWanted(port) {
			all = append(all, l)
		}
	}
	return all
}

// InterfaceOf is the name of the workload's end of a port's pair.
func InterfaceOf(p model.Port) string {
	switch {
	case p.Attach.Interface != "":
		return p.Attach.Interface
	case p.Attach.Host:
		return ownPrefix + hostName(p.Node, p.Name)[len(HostPrefix):14]
	}
	return model.DefaultInterface
}
