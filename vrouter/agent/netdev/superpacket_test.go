package netdev

import (
	"os"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"windtunnel/internal/must"
)

// A physical device must be able to segment large superpackets. A virtual device must pass them
// already, because the agent does not know the devices behind it.
func TestAFabricDeviceRefusesLargeSuperpackets(t *testing.T) {
	attrs := func(tso, size uint32) netlink.LinkAttrs {
		return netlink.LinkAttrs{Name: "eth1", TSOMaxSize: tso, GSOMaxSize: size, GROMaxSize: size, GSOIPv4MaxSize: size, GROIPv4MaxSize: size}
	}
	lower := attrs(524_280, 65_536)
	lower.GSOMaxSize = 32_768
	for why, l := range map[string]netlink.Link{
		"":                              &netlink.Device{LinkAttrs: attrs(524_280, 65_536)},
		"segments at most 65536 bytes":  &netlink.Device{LinkAttrs: attrs(65_536, 65_536)},
		"is virtual (bond)":             &netlink.Bond{LinkAttrs: attrs(524_280, 65_536)},
		"other maximum sizes than":      &netlink.Device{LinkAttrs: lower},
		"other maximum sizes":           &netlink.Device{LinkAttrs: attrs(524_280, 0)}, // before Linux 6.3
		"segments at most 0 bytes":      &netlink.Device{LinkAttrs: attrs(0, 0)},
		"is virtual (veth), and its ma": &netlink.Veth{LinkAttrs: attrs(524_280, 65_536)},
	} {
		if got := FabricRefusesBig(l); why == "" && got != "" || !strings.Contains(got, why) {
			t.Errorf("the device is refused with %q, want %q", got, why)
		}
	}
	must.Equal(t, "", FabricRefusesBig(&netlink.Veth{LinkAttrs: attrs(524_280, 180_000)}))
}

// A node that forwards packets must not merge them to a size that another device cannot pass. The
// agent's own devices do not count.
func TestANodeThatForwardsHasNoLargeSuperpackets(t *testing.T) {
	s := newSpace(t)
	for i, name := range []string{"fab", "eth1"} {
		attrs := netlink.NewLinkAttrs()
		attrs.Name = name
		must.Succeed(t, s.Links.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: HostPrefix + name}))
		for _, end := range []string{name, HostPrefix + name} {
			l := must.Get(s.Link(end))(t)
			must.Succeed(t, s.Links.LinkSetAlias(l, []string{"vrouter node n port p network net", "", "other"}[i]))
			must.Succeed(t, s.Links.LinkSetUp(l))
		}
	}
	why := func() string {
		t.Helper()
		here := NewDevices(s)
		must.Succeed(t, here.List())
		return must.Get(ForwardingRefusesBig(here, "n", map[string]bool{"fab": true}))(t)
	}
	set := func(value string) {
		t.Helper()
		must.Succeed(t, s.Do(func() error { return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte(value), 0o644) }))
	}
	set("0")
	must.Equal(t, "", why())
	set("1")
	if got := why(); !strings.Contains(got, "eth1 has smaller maximum sizes") {
		t.Errorf("a node that forwards by eth1 refuses with %q", got)
	}
	for _, name := range []string{"eth1", HostPrefix + "eth1"} {
		l := must.Get(s.Link(name))(t)
		must.Equal(t, true, must.Get(s.SetSuperpackets(l, true))(t))
		must.Equal(t, false, must.Get(s.SetSuperpackets(l, true))(t)) // no change is left
	}
	must.Equal(t, "", why())
	must.Succeed(t, RestoreSuperpackets(s, []netlink.Link{must.Get(s.Link("eth1"))(t)}))
	must.Equal(t, uint32(65_536), must.Get(s.Link("eth1"))(t).Attrs().GROIPv4MaxSize)
}
