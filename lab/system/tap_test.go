package system

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"windtunnel/internal/must"
	"windtunnel/lab/space"
	"windtunnel/lab/suite"
)

// tapNode is a node with one VM in a namespace of the test's own.
func tapNode(t *testing.T) *Node {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("making a network namespace needs root")
	}
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		t.Skip(err)
	}
	name := fmt.Sprintf("wt-t%d-a", os.Getpid())
	s := must.Get(space.Create(name))(t)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := space.Delete(name); err != nil {
			t.Error(err)
		}
	})
	return &Node{Name: name, Space: s, MTU: 1500, CPUs: []int{0}, Steer: true, Endpoints: []Endpoint{{
		Name: "c1", Guest: &Guest{Queues: 2},
		V4: netip.MustParsePrefix("10.31.0.2/16"), V6: netip.MustParsePrefix("fd31:c::2/64"),
	}}}
}

func TestAVMsTapIsUnderTheBridgeAndStaysWithoutAProcess(t *testing.T) {
	n := tapNode(t)
	must.Succeed(t, addBridge(n, bridgeDevice, 1450))
	must.Succeed(t, connectContainers(n, 1450))
	l := must.Get(n.Space.Link("vifc1"))(t)
	bridge := must.Get(n.Space.Link(bridgeDevice))(t)
	tap, ok := l.(*netlink.Tuntap)
	if !ok || tap.Mode != netlink.TUNTAP_MODE_TAP || l.Attrs().MasterIndex != bridge.Attrs().Index || l.Attrs().MTU != 1450 {
		t.Errorf("%T %+v is no tap of MTU 1450 under bridge %d", l, l.Attrs(), bridge.Attrs().Index)
	}
	n.Endpoints[0].Guest.Queues = 1 // what it has without a process
	must.Succeed(t, SteerTap(n, n.Endpoints[0]))
	if mask, err := n.Space.ReadSysfs("vifc1/queues/rx-0/rps_cpus"); err != nil || !strings.HasSuffix(mask, "1") {
		t.Errorf("its queue is steered to %q: %v", mask, err)
	}
	want := GuestConfig{MTU: 1450, Addresses: []netip.Prefix{n.Endpoints[0].V4, n.Endpoints[0].V6}}
	if got := n.Endpoints[0].Guest.Config; got.MTU != want.MTU || !slices.Equal(got.Addresses, want.Addresses) || len(got.Gateways) > 0 {
		t.Errorf("the guest is to have %+v; want %+v", got, want)
	}
	must.Succeed(t, disconnectContainers(n))
	if _, err := n.Space.Link("vifc1"); err == nil {
		t.Error("the tap is still there")
	}
}

func TestAVMBehindARoutedBridgeGetsItsNodesSubnetAndGateways(t *testing.T) {
	n := tapNode(t)
	must.Succeed(t, connectRouted(n, 1400))
	got := n.Endpoints[0].Guest.Config
	if got.MTU != 1400 || len(got.Addresses) != 2 || got.Addresses[0].Bits() != routedBits4 || got.Addresses[1].Bits() != routedBits6 {
		t.Errorf("the guest is to have %+v", got)
	}
	v4, v6 := routedSubnets(0)
	if want := []netip.Addr{gateway(v4).Addr(), gateway(v6).Addr()}; !slices.Equal(got.Gateways, want) {
		t.Errorf("gateways %v; want %v", got.Gateways, want)
	}
}

func TestAGuestsDeviceHasItsMTUAddressesAndDefaultRoutes(t *testing.T) {
	n := tapNode(t)
	inside := n.Space // as if this were the guest's
	attrs := netlink.NewLinkAttrs()
	attrs.Name = EndpointDevice
	must.Succeed(t, errors.Join(inside.Add(&netlink.Veth{LinkAttrs: attrs, PeerName: "far"}), inside.Up("far")))
	config := GuestConfig{MTU: 1372, Addresses: []netip.Prefix{n.Endpoints[0].V4, n.Endpoints[0].V6}, Gateways: []netip.Addr{netip.MustParseAddr("10.31.0.1"), netip.MustParseAddr("fd31:c::1")}}
	must.Succeed(t, ConfigureGuest(inside, config, suite.Endpoint{Kind: suite.VM, Spread: true, NoSegmentation: true}))
	l, err := inside.Link(EndpointDevice)
	if err != nil || l.Attrs().MTU != 1372 {
		t.Fatalf("MTU %d: %v", l.Attrs().MTU, err)
	}
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		routes := must.Get(inside.Links.RouteList(l, family))(t)
		ways := 0
		for _, r := range routes {
			if r.Gw != nil {
				ways++
			}
		}
		if ways != 1 {
			t.Errorf("family %d has %d routes over a gateway: %v", family, ways, routes)
		}
	}
	addresses, err := inside.Links.AddrList(l, netlink.FAMILY_V4)
	if err != nil || len(addresses) != 1 || addresses[0].IPNet.String() != "10.31.0.2/16" {
		t.Errorf("addresses %v, %v", addresses, err)
	}
	if mask, err := inside.ReadSysfs(EndpointDevice + "/queues/rx-0/rps_cpus"); err != nil || strings.Trim(mask, "0,") == "" {
		t.Errorf("receive work is spread over %q: %v", mask, err)
	}
	if on := segmentations(t, inside, EndpointDevice); len(on) > 0 {
		t.Errorf("the device still segments: %v", on)
	}
}

func TestOnlySystemsThatConnectTapsHaveVMs(t *testing.T) {
	vm := suite.Endpoint{Kind: suite.VM}
	for name, can := range map[string]bool{"bridge": true, "vxlan": true, "vrouter-mpls-udp": true, "macvlan": false} {
		s, err := ByName(name)
		must.Succeed(t, err)
		err = SupportsEndpoint(s, vm, suite.Fabric{})
		if (err == nil) != can {
			t.Errorf("%s with VMs: %v", name, err)
		}
		if err != nil && !strings.Contains(err.Error(), name) {
			t.Errorf("%v does not name %s", err, name)
		}
		if err := SupportsEndpoint(s, suite.Endpoint{}, suite.Fabric{}); err != nil {
			t.Errorf("%s with containers: %v", name, err)
		}
	}
}
