package space

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// deviceState describes a device with everything that a loan must keep.
func deviceState(t *testing.T, s *Space, device string) string {
	t.Helper()
	l, err := s.Link(device)
	if err != nil {
		t.Fatal(err)
	}
	addresses, err := s.Links.AddrList(l, netlink.FAMILY_ALL)
	if err != nil {
		t.Fatal(err)
	}
	routes, err := s.Links.RouteList(l, netlink.FAMILY_ALL)
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("MTU %d, up %t", l.Attrs().MTU, l.Attrs().Flags&net.FlagUp != 0)
	for _, a := range addresses {
		if a.Scope != unix.RT_SCOPE_LINK {
			text += fmt.Sprintf("; %s %s broadcast %v", a.IPNet, a.Label, a.Broadcast)
		}
	}
	for _, r := range routes {
		if r.Dst.IP.To4() != nil {
			text += fmt.Sprintf("; route %s via %v metric %d", r.Dst, r.Gw, r.Priority)
		}
	}
	features, err := s.Features(device)
	if err != nil {
		t.Fatal(err)
	}
	text += fmt.Sprintf("; TSO %+v, GSO partial %+v", features["tx-tcp-segmentation"], features["tx-gso-partial"])
	err = s.Do(func() error {
		value, err := os.ReadFile("/proc/sys/net/ipv4/conf/" + device + "/rp_filter")
		text += "; rp_filter " + strings.TrimSpace(string(value))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestABorrowedDeviceIsReturnedAsItWas(t *testing.T) {
	host, peer := fresh(t, "host"), fresh(t, "peer")
	if err := host.Pair(Veth{Name: "data", PeerName: "far", MTU: 1400}, peer); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		host.Address("data", netip.MustParsePrefix("10.1.0.1/24")), host.Address("data", netip.MustParsePrefix("fd00:1::1/64")),
		host.DeviceSysctl("ipv4", "data", "rp_filter", "2"), host.Up("data"), peer.Up("far"),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	l, err := host.Link("data")
	if err != nil {
		t.Fatal(err)
	}
	route := &netlink.Route{LinkIndex: l.Attrs().Index, Dst: IPNet(netip.MustParsePrefix("10.2.0.0/16")), Gw: net.IPv4(10, 1, 0, 9), Priority: 77}
	if err := host.Links.RouteAdd(route); err != nil {
		t.Fatal(err)
	}
	before := deviceState(t, host, "data")

	node := fresh(t, "node")
	if err := host.Do(func() error { return node.Borrow("data") }); err != nil {
		t.Fatal(err)
	}
	if err := node.Offloads("data", map[string]bool{"tx-tcp-segmentation": false, "tx-udp_tnl-segmentation": false}); err != nil {
		t.Error(err)
	}
	if err := DeleteHome(node.Name); err != nil { // as a system does when its daemons end
		t.Error(err)
	}
	if elsewhere, err := LentElsewhere(node.Name); err != nil || !elsewhere {
		t.Errorf("seen from another namespace: %t, %v", elsewhere, err)
	}
	if err := Delete(node.Name); err == nil || !strings.Contains(err.Error(), "belongs to another network namespace") {
		t.Errorf("a process in another namespace removed the node: %v", err)
	}
	if err := host.Do(func() error { return Delete(node.Name) }); err != nil {
		t.Fatal(err)
	}
	if after := deviceState(t, host, "data"); after != before {
		t.Errorf("the device was\n%s, and is\n%s", before, after)
	}
}
