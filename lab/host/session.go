package host

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"windtunnel/lab/space"
)

// sshSession has the two addresses of the SSH session to the engine. Without SSH they are not
// valid.
type sshSession struct{ peer, local netip.Addr }

// parseSession parses sshd's variable SSH_CONNECTION.
func parseSession(variable string) sshSession {
	words := strings.Fields(variable)
	if len(words) != 4 {
		return sshSession{}
	}
	peer, _ := netip.ParseAddr(words[0])
	local, _ := netip.ParseAddr(words[2])
	return sshSession{peer.Unmap(), local.Unmap()}
}

// over returns the reason why the session needs a device; "" if it does not.
func (s sshSession) over(host *space.Space, l netlink.Link) (why string, err error) {
	if !s.local.IsValid() || !s.peer.IsValid() {
		return "", nil
	}
	if zone := s.peer.Zone(); zone != "" { // a link-local address
		if zone == l.Attrs().Name {
			why = fmt.Sprintf("the SSH session's peer %s is on it", s.peer)
		}
		return why, nil
	}
	own, err := host.Links.AddrList(l, netlink.FAMILY_ALL)
	if err != nil {
		return "", err
	}
	if slices.ContainsFunc(own, func(a netlink.Addr) bool { return a.IP.Equal(s.local.AsSlice()) }) {
		return fmt.Sprintf("the SSH session uses its address %s", s.local), nil
	}
	routes, err := host.Links.RouteGetWithOptions(s.peer.AsSlice(), &netlink.RouteGetOptions{SrcAddr: s.local.AsSlice()})
	if errors.Is(err, unix.ENETUNREACH) || errors.Is(err, unix.EHOSTUNREACH) {
		return "", nil
	}
	if err != nil {
		return fmt.Sprintf("the route to the SSH session's peer %s cannot be found: %v", s.peer, err), nil
	}
	if slices.ContainsFunc(routes, func(r netlink.Route) bool { return r.LinkIndex == l.Attrs().Index }) {
		return fmt.Sprintf("the route to the SSH session's peer %s uses it", s.peer), nil
	}
	return "", nil
}
