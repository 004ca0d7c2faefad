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

// ovsTaken has the settings of the fabric device from before the userspace datapath
// used it. Detach restores them. They are stored in a file in the node's home.
type ovsTaken struct {
	Device     string            `json:"device"`
	Addresses  []netip.Prefix    `json:"addresses"`
	IPv4       map[string]string `json:"ipv4"` // sysctls
	IPv6       map[string]string `json:"ipv6"`
	GROMax     uint32            `json:"gro_max"` // bytes, IFLA_GRO_MAX_SIZE
	GROMaxIPv4 uint32            `json:"gro_max_ipv4"`
	Promisc    bool              `json:"promisc"`
}

// ovsPhysical is the bridge that replaces the node's stack on the fabric.
const ovsPhysical = "br-phy"

// The kernel's stack gets a copy of every frame that a packet socket reads. These
// settings make it drop the copy before the transport layer: packets whose source it
// reaches by another device (RFC 3704), ARP requests for an address of another
// device, and all IPv6.
var (
	ovsTakenIPv4 = map[string]string{"rp_filter": "1", "arp_ignore": "1"}
	ovsTakenIPv6 = map[string]string{"disable_ipv6": "1"}
)

// takeUnderlay gives the fabric device to Open vSwitch, and its addresses to a bridge
// over the device: the userspace datapath sends a tunnel's packets by the bridge that
// has the route.
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
	// The fabric configures queues and filters of the NIC: linux-noop stops Open
	// vSwitch from changing them.
	err = configureOVS(n, "add-br", ovsPhysical,
		"--", "set", "bridge", ovsPhysical, "datapath_type="+string(ovsUserspace), "fail_mode=standalone", "other_config:hwaddr="+l.Attrs().HardwareAddr.String(),
		"--", "add-port", ovsPhysical, taken.Device,
		"--", "--id=@noop", "create", "qos", "type=linux-noop", "--", "set", "port", taken.Device, "qos=@noop")
	if err != nil {
		return err
	}
	if err := taken.apart(n); err != nil {
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

// lookAtFabric reads the settings of the fabric device that will be changed.
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

// deviceSysctls reads a device's sysctls with the given names. It omits those that
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

// apart hides Open vSwitch's frames from the kernel's stack. It also stops GRO from
// merging them: a packet socket truncates frames above the MTU, and a merged packet
// has no real checksum. GRO stays on, because it makes the NIC poll its ring on the
// node's CPUs.
func (t *ovsTaken) apart(n *Node) error {
	if err := t.sysctls(n, ovsTakenIPv4, ovsTakenIPv6); err != nil {
		return err
	}
	if t.GROMax == 0 || t.GROMaxIPv4 == 0 {
		on, err := n.Space.OffloadsOn(t.Device)
		if err != nil {
			return err
		}
		if slices.Contains(on, "rx-gro") {
			return fmt.Errorf("stop GRO of %s from merging frames for a packet socket: this kernel cannot limit GRO; use Linux 6.3 or later, or a fabric of `kind: veth`", t.Device)
		}
		return nil
	}
	return setGROMax(n, t.Device, ovsNoMerge, ovsNoMerge)
}

// ovsNoMerge is a limit in bytes that two frames together always exceed
// (skb_gro_receive, net/core/gro.c).
const ovsNoMerge = 1

func setGROMax(n *Node, device string, bytes, bytesIPv4 uint32) error {
	l, err := n.Space.Link(device)
	if err != nil {
		return err
	}
	// Set the general limit first: if it is small, setting it sets IPv4's limit too
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

// giveBack restores the fabric device. Open vSwitch has ended.
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

// readTaken returns nil if nothing was changed.
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
