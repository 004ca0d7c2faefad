package space

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"
	"github.com/vishvananda/netlink"
)

// Link finds a device.
func (s *Space) Link(device string) (netlink.Link, error) {
	l, err := s.Links.LinkByName(device)
	if err != nil {
		return nil, fmt.Errorf("find device %s in %s: %w", device, s, err)
	}
	return l, nil
}

// Add makes a device.
func (s *Space) Add(l netlink.Link) error {
	if err := s.Links.LinkAdd(l); err != nil {
		return fmt.Errorf("add %s device %s in %s: %w", l.Type(), l.Attrs().Name, s, err)
	}
	return nil
}

// Remove deletes a device. A missing device is no error.
func (s *Space) Remove(device string) error {
	l, err := s.Links.LinkByName(device)
	if err != nil {
		if _, gone := err.(netlink.LinkNotFoundError); gone {
			return nil
		}
		return fmt.Errorf("find device %s in %s: %w", device, s, err)
	}
	if err := s.Links.LinkDel(l); err != nil {
		return fmt.Errorf("delete device %s in %s: %w", device, s, err)
	}
	return nil
}

// Up sets a device up.
func (s *Space) Up(device string) error {
	l, err := s.Link(device)
	if err != nil {
		return err
	}
	if err := s.Links.LinkSetUp(l); err != nil {
		return fmt.Errorf("set %s up in %s: %w", device, s, err)
	}
	return nil
}

// Enslave makes a device a port of a bridge.
func (s *Space) Enslave(device, bridge string) error {
	l, err := s.Link(device)
	if err != nil {
		return err
	}
	b, err := s.Link(bridge)
	if err != nil {
		return err
	}
	if err := s.Links.LinkSetMaster(l, b); err != nil {
		return fmt.Errorf("make %s a port of %s in %s: %w", device, bridge, s, err)
	}
	return nil
}

// Address adds an address to a device. IPv6 addresses skip duplicate address
// detection, because the lab uses each address once.
func (s *Space) Address(device string, p netip.Prefix) error { return s.address(device, p, 0) }

func (s *Space) address(device string, p netip.Prefix, flags int) error {
	l, err := s.Link(device)
	if err != nil {
		return err
	}
	a := &netlink.Addr{IPNet: IPNet(p), Flags: flags}
	if p.Addr().Is6() {
		a.Flags |= ifaFlagNoDAD
	}
	if err := s.Links.AddrAdd(l, a); err != nil {
		return fmt.Errorf("add address %s to %s in %s: %w", p, device, s, err)
	}
	return nil
}

// Address flags, linux/if_addr.h.
const (
	ifaFlagNoDAD         = 0x02
	ifaFlagNoPrefixRoute = 0x200
)

// IPNet converts a prefix to netlink's type.
func IPNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

// Veth describes a pair of devices, one end in each namespace.
type Veth struct {
	Name     string
	MAC      net.HardwareAddr
	PeerName string
	PeerMAC  net.HardwareAddr
	MTU      int
	Queues   int // in each direction, ≥ 1
}

// Pair makes a veth pair with v.Name in s and v.PeerName in peer; both are
// down.
func (s *Space) Pair(v Veth, peer *Space) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU, attrs.HardwareAddr = v.Name, v.MTU, v.MAC
	attrs.NumTxQueues, attrs.NumRxQueues = max(v.Queues, 1), max(v.Queues, 1)
	return s.Add(&netlink.Veth{
		LinkAttrs:        attrs,
		PeerName:         v.PeerName,
		PeerHardwareAddr: v.PeerMAC,
		PeerMTU:          uint32(v.MTU),
		PeerNumTxQueues:  uint32(max(v.Queues, 1)),
		PeerNumRxQueues:  uint32(max(v.Queues, 1)),
		PeerNamespace:    netlink.NsFd(peer.NS),
	})
}

// SteerReceive distributes the receive work of the first queues of a device to the
// given CPUs (RPS), regardless of the CPU on which packets arrive. A device may use
// fewer queues than given; SteerReceive skips unused queues, which have no setting.
func (s *Space) SteerReceive(device string, queues int, cpus []int) error {
	for q := range max(queues, 1) {
		err := s.Sysfs(fmt.Sprintf("%s/queues/rx-%d/rps_cpus", device, q), mask(cpus))
		if q > 0 && errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// mask prints a CPU set in the form of the kernel's bitmaps: 32-bit hexadecimal
// words, the highest first, separated by commas.
func mask(cpus []int) string {
	words := []uint32{0}
	for _, c := range cpus {
		for c/32 >= len(words) {
			words = append(words, 0)
		}
		words[c/32] |= 1 << (c % 32)
	}
	var b strings.Builder
	for i := len(words) - 1; i >= 0; i-- {
		if i < len(words)-1 {
			b.WriteByte(',')
			fmt.Fprintf(&b, "%08x", words[i])
			continue
		}
		b.WriteString(strconv.FormatUint(uint64(words[i]), 16))
	}
	return b.String()
}

// NAPIThreads lists the PIDs of the threads that poll a device's receive queues. It
// finds them by name. The kernel cuts a thread's name to 15 bytes.
func NAPIThreads(device string) ([]int, error) {
	all, err := procfs.AllProcs()
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, p := range all {
		comm, err := p.Comm()
		if err == nil && strings.HasPrefix(comm, "napi/"+device+"-") { // an error means that the process has ended
			pids = append(pids, p.PID)
		}
	}
	slices.Sort(pids)
	return pids, nil
}
