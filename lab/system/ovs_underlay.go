package system

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"

	"windtunnel/lab/space"
)

// ovsTaken has the original settings of the fabric device. takeUnderlay changes the
// settings for the userspace datapath, and Detach restores them. A file in the
// node's home stores them meanwhile.
type ovsTaken struct {
	Device     string            `json:"device"`
	Addresses  []netip.Prefix    `json:"addresses"`
	IPv4       map[string]string `json:"ipv4"` // sysctls
	IPv6       map[string]string `json:"ipv6"`
	GROMax     uint32            `json:"gro_max"` // bytes, IFLA_GRO_MAX_SIZE
	GROMaxIPv4 uint32            `json:"gro_max_ipv4"`
	Promisc    bool              `json:"promisc"`
}

// ovsPhysical is a bridge with the fabric device as its port. It has the node's
// underlay addresses.
const ovsPhysical = "br-phy"

// Open vSwitch reads the fabric device by a packet socket, and the kernel's stack gets
// a copy of every frame. With these sysctls the stack drops the copies before the
// transport layer. rp_filter drops a packet if the route to its source uses another
// device (RFC 3704). arp_ignore drops ARP requests for addresses of other devices.
// disable_ipv6 drops all IPv6 packets.
var (
	ovsTakenIPv4 = map[string]string{"rp_filter": "1", "arp_ignore": "1"}
	ovsTakenIPv6 = map[string]string{"disable_ipv6": "1"}
)

// takeUnderlay makes the fabric device a port of the bridge ovsPhysical, and moves
// its addresses to the bridge. The userspace datapath sends a tunnel's packets by
// the bridge that has the route.
func takeUnderlay(n *Node) error {
	taken, err := lookAtFabric(n)
	if err != nil {
		return err
	}
	if err := taken.write(n); err != nil {
		return err
	}
	l, err := n.Space.Link(taken.Device)
	if err != nil {
		return err
	}
	// The fabric has configured queues and filters of the NIC. The QoS type linux-noop
	// stops Open vSwitch from changing them.
	err = configureOVS(n, "add-br", ovsPhysical,
		"--", "set", "bridge", ovsPhysical, "datapath_type="+string(ovsUserspace), "fail_mode=standalone", "other_config:hwaddr="+l.Attrs().HardwareAddr.String(),
		"--", "add-port", ovsPhysical, taken.Device,
		"--", "--id=@noop", "create", "qos", "type=linux-noop", "--", "set", "port", taken.Device, "qos=@noop")
	if err != nil {
		return err
	}
	if err := taken.isolate(n); err != nil {
		return err
	}
	if err := taken.drop(n); err != nil {
		return err
	}
	if err := n.Space.Up(ovsPhysical); err != nil {
		return err
	}
	return taken.connect(n, ovsPhysical)
}

// lookAtFabric reads the settings of the fabric device that takeUnderlay changes.
func lookAtFabric(n *Node) (*ovsTaken, error) {
	t := &ovsTaken{Device: n.Fabric[0]}
	l, err := n.Space.Link(t.Device)
	if err != nil {
		return nil, err
	}
	a := l.Attrs()
	t.GROMax, t.GROMaxIPv4, t.Promisc = a.GROMaxSize, a.GROIPv4MaxSize, a.Promisc > 0
	addrs, err := n.Space.Links.AddrList(l, netlink.FAMILY_ALL)
	if err != nil {
		return nil, fmt.Errorf("list the addresses of %s in %s: %w", t.Device, n.Space.Name, err)
	}
	for _, a := range addrs {
		ip, _ := netip.AddrFromSlice(a.IP)
		bits, _ := a.Mask.Size()
		if ip = ip.Unmap(); !ip.IsLinkLocalUnicast() {
			t.Addresses = append(t.Addresses, netip.PrefixFrom(ip, bits))
		}
	}
	if t.IPv4, err = deviceSysctls(n, "ipv4", t.Device, ovsTakenIPv4); err != nil {
		return nil, err
	}
	t.IPv6, err = deviceSysctls(n, "ipv6", t.Device, ovsTakenIPv6)
	return t, err
}

// deviceSysctls reads a device's sysctls with the given names. It omits sysctls that
// this kernel lacks.
func deviceSysctls(n *Node, family, device string, names map[string]string) (map[string]string, error) {
	values := map[string]string{}
	for name := range names {
		var text []byte
		err := n.Space.Do(func() (err error) {
			text, err = os.ReadFile(filepath.Join("/proc/sys/net", family, "conf", device, name))
			return err
		})
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read sysctl %s of %s in %s: %w", name, device, n.Space.Name, err)
		}
		values[name] = strings.TrimSpace(string(text))
	}
	return values, nil
}

// isolate makes the kernel's stack drop the frames for Open vSwitch. It also stops
// GRO from merging frames: a packet socket truncates frames larger than the MTU, and
// a merged packet has no valid checksum. GRO stays on, because it makes the NIC poll
// its ring on the node's CPUs.
func (t *ovsTaken) isolate(n *Node) error {
	if err := t.sysctls(n, ovsTakenIPv4, ovsTakenIPv6); err != nil {
		return err
	}
	if t.GROMax == 0 || t.GROMaxIPv4 == 0 {
		on, err := n.Space.OffloadsOn(t.Device)
		if err != nil {
			return err
		}
		if slices.Contains(on, "rx-gro") {
			return fmt.Errorf("stop GRO on %s from merging frames: this kernel cannot limit GRO; use Linux 6.3 or later, or a fabric of `kind: veth`", t.Device)
		}
		return nil
	}
	return setGROMax(n, t.Device, ovsNoMerge, ovsNoMerge)
}

// ovsNoMerge is a GRO limit in bytes. Two frames together always exceed it
// (skb_gro_receive, net/core/gro.c).
const ovsNoMerge = 1

func setGROMax(n *Node, device string, bytes, bytesIPv4 uint32) error {
	l, err := n.Space.Link(device)
	if err != nil {
		return err
	}
	// Set the general limit first: a small general limit also changes IPv4's limit
	// (netif_set_gro_max_size, net/core/dev.h).
	err = n.Space.Links.LinkSetGROMaxSize(l, int(bytes))
	if err == nil {
		err = n.Space.Links.LinkSetGROIPv4MaxSize(l, int(bytesIPv4))
	}
	if err != nil {
		return fmt.Errorf("set the GRO limit of %s in %s to %d bytes: %w", device, n.Space.Name, bytes, err)
	}
	n.Space.Note(device+" gro_max_size", fmt.Sprint(bytes))
	n.Space.Note(device+" gro_ipv4_max_size", fmt.Sprint(bytesIPv4))
	return nil
}

func (t *ovsTaken) sysctls(n *Node, ipv4, ipv6 map[string]string) error {
	for family, values := range map[string]map[string]string{"ipv4": ipv4, "ipv6": ipv6} {
		for name, value := range values {
			if err := n.Space.DeviceSysctl(family, t.Device, name, value); err != nil {
				return err
			}
		}
	}
	return nil
}

// connect adds the addresses to a device, with the lab's routes to their networks.
func (t *ovsTaken) connect(n *Node, device string) error {
	for _, p := range t.Addresses {
		if err := n.Space.Connect(device, p); err != nil {
			return err
		}
	}
	return nil
}

// drop removes the addresses, and the routes with them, from the fabric device.
func (t *ovsTaken) drop(n *Node) error {
	l, err := n.Space.Link(t.Device)
	if err != nil {
		return err
	}
	addrs, err := n.Space.Links.AddrList(l, netlink.FAMILY_ALL)
	if err != nil {
		return fmt.Errorf("list the addresses of %s in %s: %w", t.Device, n.Space.Name, err)
	}
	for _, a := range addrs {
		if ip, _ := netip.AddrFromSlice(a.IP); ip.Unmap().IsLinkLocalUnicast() {
			continue
		}
		if err := n.Space.Links.AddrDel(l, &a); err != nil {
			return fmt.Errorf("remove address %s from %s in %s: %w", a.IPNet, t.Device, n.Space.Name, err)
		}
	}
	return nil
}

// giveBack restores the settings of the fabric device. Open vSwitch must have ended.
func (t *ovsTaken) giveBack(n *Node) error {
	errs := []error{t.sysctls(n, t.IPv4, t.IPv6)}
	if t.GROMax > 0 && t.GROMaxIPv4 > 0 {
		errs = append(errs, setGROMax(n, t.Device, t.GROMax, t.GROMaxIPv4))
	}
	if l, err := n.Space.Link(t.Device); err != nil {
		errs = append(errs, err)
	} else if !t.Promisc {
		errs = append(errs, n.Space.Links.SetPromiscOff(l))
	}
	return errors.Join(append(errs, t.drop(n), t.connect(n, t.Device))...)
}

func takenFile(n *Node) string { return filepath.Join(space.Home(n.Name), "fabric.json") }

func (t *ovsTaken) write(n *Node) error {
	text, err := json.Marshal(t)
	if err != nil {
		return err
	}
	if err := os.WriteFile(takenFile(n), text, 0o600); err != nil {
		return fmt.Errorf("store the settings of %s: %w", t.Device, err)
	}
	return nil
}

// readTaken reads the stored settings; nil if takeUnderlay has stored none.
func readTaken(n *Node) (*ovsTaken, error) {
	text, err := os.ReadFile(takenFile(n))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	t := &ovsTaken{}
	if err == nil {
		err = json.Unmarshal(text, t)
	}
	if err != nil {
		return nil, fmt.Errorf("read the stored settings of the fabric device of node %s: %w", n.Name, err)
	}
	return t, nil
}
