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

// ovsTaken is what the fabric device had before the userspace datapath took it
// over; Detach gives it back. It is kept as a file in the node's home.
type ovsTaken struct {
	Device     string            `json:"device"`
	Addresses  []netip.Prefix    `json:"addresses"`
	IPv4       map[string]string `json:"ipv4"` // sysctls
	IPv6       map[string]string `json:"ipv6"`
	GROMax     uint32            `json:"gro_max"` // bytes, IFLA_GRO_MAX_SIZE
	GROMaxIPv4 uint32            `json:"gro_max_ipv4"`
	Promisc    bool              `json:"promisc"`
}

// ovsPhysical is the bridge that stands for the node's own stack on the fabric.
const ovsPhysical = "br-phy"

// The kernel's stack sees a copy of every frame that a packet socket reads.
// These have it throw its copy away before the transport layer: packets from
// whom it reaches by another device (RFC 3704), questions for an address that
// another device has, and IPv6 altogether.
var (
	ovsTakenIPv4 = map[string]string{"rp_filter": "1", "arp_ignore": "1"}
	ovsTakenIPv6 = map[string]string{"disable_ipv6": "1"}
)

// takeUnderlay hands the fabric device to Open vSwitch and gives its addresses
// to a bridge over it: the userspace datapath sends a tunnel's packets by the
// bridge that has the route.
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
	// Queues and filters of the NIC are the fabric's: linux-noop keeps Open
	// vSwitch's hands off them.
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

// lookAtFabric reads what will be changed of the fabric device.
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

// deviceSysctls reads a device's sysctls of the given names; those that this
// kernel lacks are left out.
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

// apart keeps the kernel's stack from what Open vSwitch reads, and keeps GRO
// from merging it: a packet socket cuts what is larger than the MTU short, and
// a merged packet's checksum is not a real one. GRO stays on, for it is what
// has the NIC poll its ring on the node's CPUs.
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
			return fmt.Errorf("keep GRO of %s from merging frames that a packet socket shall read: this kernel cannot limit it; use Linux 6.3 or later, or a fabric of `kind: veth`", t.Device)
		}
		return nil
	}
	return setGROMax(n, t.Device, ovsNoMerge, ovsNoMerge)
}

// ovsNoMerge is a limit in bytes that no two frames together keep
// (skb_gro_receive, net/core/gro.c).
const ovsNoMerge = 1

func setGROMax(n *Node, device string, bytes, bytesIPv4 uint32) error {
	l, err := n.Space.Link(device)
	if err != nil {
		return err
	}
	// The general limit first: where it is small, setting it sets IPv4's too
	// (netif_set_gro_max_size, net/core/dev.h).
	err = n.Space.Links.LinkSetGROMaxSize(l, int(bytes))
	if err == nil {
		err = n.Space.Links.LinkSetGROIPv4MaxSize(l, int(bytesIPv4))
	}
	if err != nil {
		return fmt.Errorf("let GRO of %s in %s merge up to %d bytes: %w", device, n.Space.Name, bytes, err)
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

// connect gives a device the addresses, with the lab's routes to their
// networks.
func (t *ovsTaken) connect(n *Node, device string) error {
	for _, p := range t.Addresses {
		if err := n.Space.Connect(device, p); err != nil {
			return err
		}
	}
	return nil
}

// drop takes the addresses from the fabric device, and the routes with them.
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
			return fmt.Errorf("take address %s from %s in %s: %w", a.IPNet, t.Device, n.Space.Name, err)
		}
	}
	return nil
}

// giveBack makes the fabric device what it was. Open vSwitch has ended.
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
		return fmt.Errorf("remember what %s was like: %w", t.Device, err)
	}
	return nil
}

// readTaken returns nil where nothing was taken.
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
		return nil, fmt.Errorf("recall what the fabric device of node %s was like: %w", n.Name, err)
	}
	return t, nil
}
