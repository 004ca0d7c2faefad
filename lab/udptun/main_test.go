package udptun

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"windtunnel/lab/space"
)

// The test binary is its own tunnel program.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == Name {
		os.Exit(Command(os.Args[2:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// side is a namespace with an underlay address.
type side struct {
	*space.Space
	at     netip.AddrPort // of its socket
	v4, v6 netip.Prefix   // behind it; its own are the first addresses
}

const (
	testDevice  = "tun0"
	testFabric  = "fab"
	testMTU     = 1500
	innerMTU    = testMTU - Overhead
	wide4       = "10.5.0.0/16" // routed into the device, also where the tunnel has no route
	testPort    = 8285
	testTimeout = 15 // seconds
)

// sides are two namespaces joined by a wire.
func sides(t *testing.T) [2]*side {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("making network namespaces needs root")
	}
	if _, err := os.Stat(cloneDevice); err != nil {
		t.Skip("needs TUN devices: ", err)
	}
	var both [2]*side
	for i := range both {
		s, err := space.Create(fmt.Sprintf("wt-udptun-%d-%d", os.Getpid(), i))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := errors.Join(s.Close(), space.Delete(s.Name)); err != nil {
				t.Error(err)
			}
		})
		both[i] = &side{
			Space: s,
			at:    netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(i + 1)}), testPort),
			v4:    netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 5, byte(i), 0}), 24),
			v6:    netip.PrefixFrom(netip.AddrFrom16([16]byte{0: 0xfd, 1: 5, 7: byte(i)}), 64),
		}
	}
	must(t, both[0].Pair(space.Veth{Name: testFabric, PeerName: testFabric, MTU: testMTU}, both[1].Space))
	for _, s := range both {
		must(t, s.DeviceSysctl("ipv6", testFabric, "disable_ipv6", "1"))
		must(t, s.Address(testFabric, netip.PrefixFrom(s.at.Addr(), 24)))
		must(t, s.Up(testFabric))
	}
	return both
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// config is a side's, with the other behind it.
func (s *side) config(other *side, batch int) Config {
	return Config{Device: testDevice, Listen: s.at, Batch: batch, Routes: []Route{{other.v4, other.at}, {other.v6, other.at}}}
}

// raise brings the tunnel's device up, with the side's inner addresses.
func (s *side) raise(t *testing.T) {
	t.Helper()
	must(t, s.DeviceSysctl("ipv6", testDevice, "addr_gen_mode", "1"))
	l, err := s.Link(testDevice)
	must(t, err)
	must(t, s.Links.LinkSetMTU(l, innerMTU))
	for _, p := range []netip.Prefix{s.v4, s.v6} {
		must(t, s.Address(testDevice, netip.PrefixFrom(p.Addr().Next(), p.Addr().BitLen())))
	}
	must(t, s.Up(testDevice))
	for _, to := range []netip.Prefix{netip.MustParsePrefix(wide4), netip.MustParsePrefix("fd05::/16")} {
		must(t, s.Links.RouteAdd(&netlink.Route{LinkIndex: l.Attrs().Index, Dst: space.IPNet(to)}))
	}
	s.awaitLocal(t)
}

// awaitLocal waits until the kernel takes the side's IPv6 address for its own:
// it makes the route for it in the background (addrconf_dad_work,
// net/ipv6/addrconf.c), even where no duplicates are looked for.
func (s *side) awaitLocal(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(testTimeout * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		found, err := s.Links.RouteGet(s.inner(6).AsSlice())
		if err == nil && len(found) > 0 && found[0].Type == unix.RTN_LOCAL {
			return
		}
	}
	t.Fatalf("%s is not %s's own after %d s", s.inner(6), s.Name, testTimeout)
}
