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

// preferred is the congestion control of the lab's connections. A host may use
// another by default, such as BBR, whose probing changes a short trial's figures more
// than the network under test.
const preferred = "cubic"

// CongestionControl returns the congestion control of the lab's connections: the
// preferred one if the kernel has it, else "" for the host's default.
var CongestionControl = sync.OnceValue(func() string {
	available, err := os.ReadFile("/proc/sys/net/ipv4/tcp_available_congestion_control")
	if err != nil || !slices.Contains(strings.Fields(string(available)), preferred) {
		return ""
	}
	return preferred
})

// recorded are the sysctls of a workload's namespace that limit its sockets. A new
// namespace has the kernel's or the host's values, and the lab does not change them.
var recorded = []string{
	"net.core.rmem_max", "net.core.wmem_max",
	"net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem", "net.ipv4.tcp_moderate_rcvbuf",
	"net.ipv4.tcp_limit_output_bytes", "net.ipv4.tcp_autocorking",
	"net.ipv4.tcp_sack", "net.ipv4.tcp_timestamps", "net.ipv4.tcp_slow_start_after_idle",
}

// Workloads prepares a namespace for tools: its devices accept no router
// advertisements, and the limits of its sockets are recorded.
func (s *Space) Workloads() error {
	if err := s.Sysctl("net.ipv6.conf.default.accept_ra", "0"); err != nil {
		return err
	}
	return s.readSysctls(recorded)
}

// Node prepares the namespace of a compute node: for tools, and for systems that
// forward packets.
func (s *Space) Node() error {
	if err := s.Workloads(); err != nil {
		return err
	}
	for _, kv := range [][2]string{
		{"net.ipv4.ip_forward", "1"},
		{"net.ipv4.conf.all.rp_filter", "0"},
		{"net.ipv4.conf.default.rp_filter", "0"},
		{"net.ipv4.fib_multipath_hash_policy", "1"},
		{"net.ipv6.fib_multipath_hash_policy", "1"},
	} {
		if err := s.Sysctl(kv[0], kv[1]); err != nil {
			return err
		}
	}
	return nil
}

// Connect gives a device an address and the route to its network.
func (s *Space) Connect(device string, p netip.Prefix) error {
	if err := s.address(device, p, ifaFlagNoPrefixRoute); err != nil {
		return err
	}
	return s.connectedRoute(device, p)
}

// Reconnect replaces the kernel's route to the network of an address by the lab's
// route.
func (s *Space) Reconnect(device string, p netip.Prefix) error {
	l, err := s.Link(device)
	if err != nil {
		return err
	}
	family := netlink.FAMILY_V6
	if p.Addr().Is4() {
		family = netlink.FAMILY_V4
	}
	routes, err := s.Links.RouteList(l, family)
	if err != nil {
		return fmt.Errorf("list the routes over %s in %s: %w", device, s, err)
	}
	for _, r := range routes {
		if r.Dst == nil || r.Dst.String() != IPNet(p.Masked()).String() {
			continue
		}
		if err := s.Links.RouteDel(&r); err != nil {
			return fmt.Errorf("replace the route to %s over %s in %s: %w", p.Masked(), device, s, err)
		}
	}
	return s.connectedRoute(device, p)
}

// connectedRoute adds the route to the network of an address, with the lab's
// congestion control. The lab does not set the congestion control as the namespace's
// default: the host must allow a default, and the lab does not change the host's
// list.
func (s *Space) connectedRoute(device string, p netip.Prefix) error {
	l, err := s.Link(device)
	if err != nil {
		return err
	}
	r := &netlink.Route{LinkIndex: l.Attrs().Index, Dst: IPNet(p.Masked()), Src: net.IP(p.Addr().AsSlice()), Congctl: CongestionControl(), Protocol: unix.RTPROT_KERNEL}
	if p.Addr().Is4() {
		r.Scope = netlink.SCOPE_LINK
	}
	if err := s.Links.RouteAdd(r); err != nil {
		return fmt.Errorf("add the route to %s over %s in %s: %w", p.Masked(), device, s, err)
	}
	s.Note("route "+p.Masked().String()+" congctl", CongestionControl())
	return nil
}
