package netdev

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/internal/setup"
	"windtunnel/internal/testprogram"
	"windtunnel/vrouter/model"
)

// testSpace returns a new network namespace with the device lo, and a function that runs
// ip(8) in it.
func testSpace(t *testing.T) (*Space, func(args string) string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root to create network namespaces")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("ip is not installed; get it with: " + setup.Command("ip"))
	}
	name := fmt.Sprintf("vr-netdev-%d", os.Getpid())
	testprogram.Output(t, "ip netns add "+name)
	t.Cleanup(func() { testprogram.Output(t, "ip netns del "+name) })
	s := must.Get(Open(name))(t)
	t.Cleanup(func() { s.Close() })
	ip := func(line string) string { return testprogram.Output(t, "ip -n "+name+" "+line) }
	ip("link set lo up")
	return s, ip
}

// After a change of the locator, the address of the old locator is removed from lo, also if its
// route was deleted before.
func TestTheAddressOfTheLastLocatorIsRemoved(t *testing.T) {
	s, ip := testSpace(t)
	old, now := netip.MustParsePrefix("fd77:0:0:1::/64"), netip.MustParsePrefix("fd77:0:0:2::/64")
	must.Succeed(t, KeepLocator(s, model.Node{Locator: old}, netip.Prefix{}))
	if text := ip("-6 address show lo") + ip("-6 route show type unreachable"); !strings.Contains(text, "fd77:0:0:1::1/128") || !strings.Contains(text, old.String()) {
		t.Errorf("the address or the route of the locator is missing:\n%s", text)
	}
	ip("-6 route del unreachable " + old.String())
	if err := KeepLocator(s, model.Node{Locator: now}, old); err != nil {
		t.Error(err)
	}
	if text := ip("-6 address show lo"); strings.Contains(text, "fd77:0:0:1::1/128") || !strings.Contains(text, "fd77:0:0:2::1/128") {
		t.Errorf("device lo has these addresses, want only the one of %s:\n%s", now, text)
	}
}

// The agent finds a locator of 80 bits of an earlier agent by its route, and removes it.
func TestTheAddressOfALongLocatorIsRemoved(t *testing.T) {
	s, ip := testSpace(t)
	old := netip.MustParsePrefix("fd77:0:0:1:2::/80")
	must.Succeed(t, KeepLocator(s, model.Node{Locator: old}, netip.Prefix{}))
	kernel := func() string { return ip("-6 address show lo") + ip("-6 route show type unreachable") }
	if text := kernel(); !strings.Contains(text, "fd77::1:2:0:0:1/128") || !strings.Contains(text, old.String()) {
		t.Errorf("the address or the route of the locator is missing:\n%s", text)
	}
	if err := KeepLocator(s, model.Node{}, netip.Prefix{}); err != nil {
		t.Error(err)
	}
	if text := kernel(); strings.Contains(text, "fd77") {
		t.Errorf("the address or the route of the locator is left:\n%s", text)
	}
}

// A locator is refused if the host has an address in it that looks like a workload's. The first
// address of the locator and others without a network are allowed.
func TestALocatorWithAnAddressOfTheHostIsRefused(t *testing.T) {
	s, ip := testSpace(t)
	locator := netip.MustParsePrefix("fd77:0:0:1::/64")
	kernel := func() string { return ip("-6 address show lo") + ip("-6 route show type unreachable") }
	ip("address add fd77:0:0:1::7/128 dev lo nodad")
	for range 2 { // the second time it has the address of the first
		must.Succeed(t, KeepLocator(s, model.Node{Locator: locator}, netip.Prefix{}))
	}
	ip("address add fd77::1:a8bb:ccff:fedd:1122/128 dev lo nodad") // made from a MAC address
	err := KeepLocator(s, model.Node{Locator: locator}, locator)
	must.Fail(t, err, "fd77:0:0:1::/64 contains the address fd77::1:a8bb:ccff:fedd:1122 of this host")
	if text := kernel(); strings.Contains(text, "fd77:0:0:1::1/128") || strings.Contains(text, "unreachable") {
		t.Errorf("the address or the route of the locator is left:\n%s", text)
	}
	ip("address del fd77::1:a8bb:ccff:fedd:1122/128 dev lo")
	if err := KeepLocator(s, model.Node{Locator: locator}, locator); err != nil {
		t.Error(err)
	}
	if text := kernel(); !strings.Contains(text, "fd77:0:0:1::1/128") {
		t.Errorf("the address of the locator is missing:\n%s", text)
	}
}

// A locator is refused if the host uses a part of it for a link, for a next hop or for a
// neighbour. Then the kernel has neither its address nor its route. It is accepted if the host
// only has a route over a router for a prefix around it, or has a link whose hosts have
// addresses in other parts of the link's prefix.
func TestALocatorThatTheHostUsesIsRefused(t *testing.T) {
	for _, c := range []struct {
		name, setup, locator, want string
	}{
		{"a prefix of a link", "address add fd77:0:0:1::7/64 dev fab nodad", "fd77:0:0:1::/64", "fd77:0:0:1::/64 contains fd77:0:0:1::/64, the prefix of a link, on device fab"},
		{"a longer prefix of a link", "address add fd77:0:0:1:5::7/96 dev fab nodad", "fd77:0:0:1::/64", "fd77:0:0:1::/64 contains fd77:0:0:1:5::/96, the prefix of a link, on device fab"},
		{"the first addresses of a link", "address add fd77:0:0:1:a:b:c:d/64 dev fab nodad", "fd77:0:0:1::/80", "fd77:0:0:1::/80 contains the first addresses of fd77:0:0:1::/64, the prefix of a link, on device fab"},
		{"a link without an address of the host", "-6 route add fd77:0:0:1::/64 dev fab", "fd77:0:0:1::/64", "fd77:0:0:1::/64 contains fd77:0:0:1::/64, the prefix of a link, on device fab"},
		{"the other end of a link", "address add fd78::1 peer fd77:0:0:1::9 dev fab nodad", "fd77:0:0:1::/64", "fd77:0:0:1::/64 contains fd77:0:0:1::9, an address on a link, on device fab"},
		{"a next hop", "-6 route add default via fd77:0:0:1::1 dev fab onlink", "fd77:0:0:1::/64", "fd77:0:0:1::/64 contains fd77:0:0:1::1, the next hop of a route, on device fab"},
		{"a next hop of several", "-6 route add fd79::/64 nexthop via fe80::7 dev fab nexthop via fd77:0:0:1::9 dev fab onlink", "fd77:0:0:1::/64", "fd77:0:0:1::/64 contains fd77:0:0:1::9, the next hop of a route, on device fab"},
		{"a next hop in another table", "-6 route add default via fd77:0:0:1::1 dev fab onlink table 100", "fd77:0:0:1::/64", "fd77:0:0:1::/64 contains fd77:0:0:1::1, the next hop of a route, on device fab"},
		{"a neighbour", "neighbour add fd77:0:0:1:5::9 lladdr 02:00:00:00:00:09 nud permanent dev fab", "fd77:0:0:1:5::/80", "fd77:0:0:1:5::/80 contains fd77::1:5:0:0:9, the address of a neighbour, on device fab"},
		{"a neighbour that answered", "neighbour add fd77:0:0:1:5::9 lladdr 02:00:00:00:00:09 nud reachable dev fab", "fd77:0:0:1:5::/80", "fd77:0:0:1:5::/80 contains fd77::1:5:0:0:9, the address of a neighbour, on device fab"},

		{"a neighbour of which only a solicitation arrived", "neighbour add fd77:0:0:1:5::9 lladdr 02:00:00:00:00:09 nud stale dev fab", "fd77:0:0:1:5::/80", ""},
		{"a neighbour that did not answer", "neighbour add fd77:0:0:1::9 nud failed dev fab", "fd77:0:0:1::/64", ""},
		{"a default route", "-6 route add default via fe80::1 dev fab", "fd77:0:0:1::/64", ""},
		{"a route for a prefix around it", "-6 route add fd77::/32 via fe80::1 dev fab", "fd77:0:0:1::/64", ""},
		{"a route to another node", "-6 route add fd77:0:0:2::/64 via fe80::1 dev fab", "fd77:0:0:1::/64", ""},
		{"the prefix of a link beside it", "address add fd77:0:0:2::1/64 dev fab nodad", "fd77:0:0:1::/64", ""},
		{"another part of a link's prefix", "address add fd77:0:0:1::7/64 dev fab nodad", "fd77:0:0:1:5::/80", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, ip := testSpace(t)
			kernel := func() string { return ip("-6 address show lo") + ip("-6 route show type unreachable") }
			ip("link add fab type veth peer name far")
			ip("link set fab up")
			ip("link set far up")
			ip(c.setup)
			n := model.Node{Locator: netip.MustParsePrefix(c.locator)}
			// The kernel adds the route to the other end of a link later (addrconf_dad_work).
			for end := time.Now().Add(time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
				use := must.Get(HostUseOf(s))(t)
				if (use.Check(n.Locator) == nil) == (c.want == "") {
					break
				}
			}
			for range 2 { // the second time the kernel may have the locator
				err := KeepLocator(s, n, n.Locator)
				if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), "locator: "+c.want+";")) {
					t.Errorf("the error is %v, want %q", err, c.want)
				}
				if text := kernel(); strings.Contains(text, n.LocatorAddress().String()+"/128") != (c.want == "") || strings.Contains(text, "unreachable "+c.locator) != (c.want == "") {
					t.Errorf("the kernel has the address and the route of the locator: want %v:\n%s", c.want == "", text)
				}
			}
		})
	}
}

// A locator that the host begins to use is removed: the link works again.
func TestALocatorIsRemovedOnceTheHostUsesIt(t *testing.T) {
	s, ip := testSpace(t)
	n := model.Node{Locator: netip.MustParsePrefix("fd77:0:0:1::/80")}
	ip("link add fab type veth peer name far")
	ip("link set fab up")
	must.Succeed(t, KeepLocator(s, n, netip.Prefix{}))
	ip("address add fd77:0:0:1::7/64 dev fab nodad")
	if out, err := exec.Command("ip", "-n", s.Name, "-6", "route", "get", "fd77:0:0:1::9").CombinedOutput(); err == nil {
		t.Fatalf("the locator does not hide the neighbour, so this test shows nothing:\n%s", out)
	}
	if err := KeepLocator(s, n, n.Locator); err == nil {
		t.Error("the locator is accepted")
	}
	if text := ip("-6 route get fd77:0:0:1::9"); !strings.Contains(text, "dev fab") {
		t.Errorf("the neighbour cannot be reached over the link:\n%s", text)
	}
}
