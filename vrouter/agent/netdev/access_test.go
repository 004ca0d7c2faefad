package netdev

import (
	"net"
	"os"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// With forwarding, Linux ignores router advertisements, so addresses and routes from them expire.
func TestForwardingIsNotTurnedOnWhereAdvertisementsAreNeeded(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	s := newSpace(t)
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.Flags = "nic", net.FlagUp
	if err := s.Links.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: "router"}); err != nil {
		t.Fatal(err)
	}
	nic, err := s.Links.LinkByName("nic")
	if err != nil {
		t.Fatal(err)
	}
	ip := func(text string) *net.IPNet {
		n, err := netlink.ParseIPNet(text)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	v6 := accessFamilies[1]
	if err := s.Links.AddrAdd(nic, &netlink.Addr{IPNet: ip("2001:db8::1/64"), Flags: unix.IFA_F_NODAD}); err != nil {
		t.Fatal(err)
	}
	if err := v6.checkAdvertisements(s); err != nil {
		t.Errorf("with an address that stays: %v", err)
	}
	refused := func(what string) {
		t.Helper()
		if err := v6.checkAdvertisements(s); err == nil || !strings.Contains(err.Error(), "on device nic; set the sysctls net.ipv6.conf.nic.accept_ra") {
			t.Errorf("with %s: %v", what, err)
		}
	}
	expires := &netlink.Addr{IPNet: ip("2001:db8::2/64"), Flags: unix.IFA_F_NODAD, ValidLft: 600, PreferedLft: 600}
	if err := s.Links.AddrAdd(nic, expires); err != nil {
		t.Fatal(err)
	}
	refused("an address that expires")
	if err := s.Links.AddrDel(nic, expires); err != nil {
		t.Fatal(err)
	}
	if err := s.Links.RouteAdd(&netlink.Route{Dst: ip("2001:db8:1::/48"), LinkIndex: nic.Attrs().Index, Protocol: unix.RTPROT_RA}); err != nil {
		t.Fatal(err)
	}
	refused("an advertised route")
}
