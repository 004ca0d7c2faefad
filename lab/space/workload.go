package space

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// preferred is the congestion control of the lab's connections. A host may
// default to another, such as BBR, whose probing moves a short trial's figures
// more than the network under test does.
const preferred = "cubic"

// CongestionControl is what the lab's connections use: the preferred one where
// the kernel has it, else empty for the host's default.
var CongestionControl = sync.OnceValue(func() string {
	available, err := os.ReadFile("/proc/sys/net/ipv4/tcp_available_congestion_control")
	if err != nil || !slices.Contains(strings.Fields(string(available)), preferred) {
		return ""
	}
	return preferred
})

// Workloads readies a namespace in which tools will run: no router is asked.
func (s *Space) Workloads() error {
	return s.Sysctl("net.ipv6.conf.default.accept_ra", "0")
}

// Connect gives a device an address and the route to its network. The route
// carries the congestion control: only a host's allowed ones may be a
// namespace's default, and the host's list is not ours to change.
func (s *Space) Connect(device string, p netip.Prefix) error {
	if err := s.address(device, p, ifaFlagNoPrefixRoute); err != nil {
		return err
	}
	l, err := s.Link(device)
	if err != nil {
		return err
	}
	r := &netlink.Route{LinkIndex: l.Attrs().Index, Dst: IPNet(p.Masked()), Src: net.IP(p.Addr().AsSlice()), Congctl: CongestionControl(), Protocol: unix.RTPROT_KERNEL}
	if p.Addr().Is4() {
		r.Scope = netlink.SCOPE_LINK
	}
	if err := s.Links.RouteAdd(r); err != nil {
		return fmt.Errorf("add the route to %s over %s in %s: %w", p.Masked(), device, s.Name, err)
	}
	s.note("route "+p.Masked().String()+" congctl", CongestionControl())
	return nil
}
