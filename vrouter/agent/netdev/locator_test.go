package netdev

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"

	"windtunnel/vrouter/model"
)

// locatorSpace returns a new network namespace with the device lo, and a function that runs
// ip(8) in it.
func locatorSpace(t *testing.T) (*Space, func(args string) string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root to create network namespaces")
	}
	name := fmt.Sprintf("vr-locator-%d", os.Getpid())
	run := func(args ...string) string {
		t.Helper()
		out, err := exec.Command("ip", args...).CombinedOutput()
		if err != nil {
			t.Fatalf("ip %v: %v: %s", args, err, out)
		}
		return string(out)
	}
	run("netns", "add", name)
	t.Cleanup(func() { exec.Command("ip", "netns", "del", name).Run() })
	s, err := Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	ip := func(args string) string { return run(append([]string{"-n", name}, strings.Fields(args)...)...) }
	ip("link set lo up")
	return s, ip
}

// After a change of the locator, the address of the old locator is removed from lo, also if its
// route was deleted before.
func TestTheAddressOfTheLastLocatorIsRemoved(t *testing.T) {
	s, ip := locatorSpace(t)
	old, now := netip.MustParsePrefix("fd77:0:0:1::/64"), netip.MustParsePrefix("fd77:0:0:2::/64")
	if err := KeepLocator(s, model.Node{Locator: old}, netip.Prefix{}); err != nil {
		t.Fatal(err)
	}
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
	s, ip := locatorSpace(t)
	old := netip.MustParsePrefix("fd77:0:0:1:2::/80")
	if err := KeepLocator(s, model.Node{Locator: old}, netip.Prefix{}); err != nil {
		t.Fatal(err)
	}
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
	s, ip := locatorSpace(t)
	locator := netip.MustParsePrefix("fd77:0:0:1::/64")
	kernel := func() string { return ip("-6 address show lo") + ip("-6 route show type unreachable") }
	ip("address add fd77:0:0:1::7/64 dev lo nodad")
	for range 2 { // the second time it has the address of the first
		if err := KeepLocator(s, model.Node{Locator: locator}, netip.Prefix{}); err != nil {
			t.Fatal(err)
		}
	}
	ip("address add fd77::1:a8bb:ccff:fedd:1122/64 dev lo nodad") // made from a MAC address
	err := KeepLocator(s, model.Node{Locator: locator}, locator)
	if err == nil || !strings.Contains(err.Error(), "fd77:0:0:1::/64 contains the address fd77::1:a8bb:ccff:fedd:1122 of this host") {
		t.Errorf("the error is %v", err)
	}
	if text := kernel(); strings.Contains(text, "fd77:0:0:1::1/128") || strings.Contains(text, "unreachable") {
		t.Errorf("the address or the route of the locator is left:\n%s", text)
	}
	ip("address del fd77::1:a8bb:ccff:fedd:1122/64 dev lo")
	if err := KeepLocator(s, model.Node{Locator: locator}, locator); err != nil {
		t.Error(err)
	}
	if text := kernel(); !strings.Contains(text, "fd77:0:0:1::1/128") {
		t.Errorf("the address of the locator is missing:\n%s", text)
	}
}
