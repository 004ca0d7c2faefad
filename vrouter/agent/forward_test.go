package agent

import (
	"context"
	"net/netip"
	"testing"

	"github.com/vishvananda/netlink"

	"windtunnel/internal/must"
	"windtunnel/vrouter/agent/agenttest"
	"windtunnel/vrouter/agent/netdev"
	"windtunnel/vrouter/model"
)

// TestWorkloadsOfTwoNodesReachEachOther by every encapsulation, v4 and v6, and
// on one node without leaving it.
func TestWorkloadsOfTwoNodesReachEachOther(t *testing.T) {
	f := agenttest.NewFleet(t)
	w := map[string]*netdev.Space{"a1": agenttest.NewSpace(t, "wa1"), "b1": agenttest.NewSpace(t, "wb1"), "a2": agenttest.NewSpace(t, "wa2")}
	a, b := start(t, f.Config("a")), start(t, f.Config("b"))
	for _, e := range model.DefaultEncapsulations {
		t.Run(string(e), func(t *testing.T) {
			s := f.State(w, e)
			defer func() { // without ports no packets pass, so the nodes do not go on with e
				for _, r := range []*running{a, b} {
					must.Get(r.client.PutState(context.Background(), f.State(nil, e)))(t)
				}
			}()
			for _, r := range []*running{a, b} {
				done := must.Get(r.client.PutState(context.Background(), s))(t)
				if len(done.Warnings) > 0 {
					t.Fatalf("node %s warns: %q", r.config.Node, done.Warnings)
				}
			}
			for _, c := range []struct{ from, to, address string }{
				{"a1", "b1", "10.7.0.11"}, {"b1", "a1", "10.7.0.10"}, {"a1", "b1", "fd07::11"}, {"a1", "a2", "10.7.0.12"}, {"b1", "a2", "fd07::12"},
			} {
				if err := exchange(w[c.from], w[c.to], c.address); err != nil {
					t.Errorf("%s to %s: %v", c.from, c.address, err)
				}
			}
			got := must.Get(a.client.VRFStats(context.Background()))(t)
			if len(got) != 1 || got[0].Network != "red" || got[0].ByEncapsulation[string(e)].TxPackets == 0 || got[0].ByEncapsulation["local"].TxPackets == 0 {
				t.Errorf("node a counts %+v", got)
			}
		})
	}
}

// TestAPortHasTheAddressesAndMTUOfItsNetwork checks the devices that adding a port creates.
func TestAPortHasTheAddressesAndMTUOfItsNetwork(t *testing.T) {
	f := agenttest.NewFleet(t)
	w := agenttest.NewSpace(t, "w")
	a := start(t, f.Config("a"))
	_, err := a.client.PutState(context.Background(), f.State(nil))
	must.Succeed(t, err)
	got, err := a.client.AddPort(context.Background(), model.PortRequest{Port: model.Port{Name: "web", Network: "red", Attach: model.Attachment{Netns: w.Name}}})
	must.Succeed(t, err)

	want := []netip.Prefix{netip.MustParsePrefix("10.7.0.2/24"), netip.MustParsePrefix("fd07::2/64")}
	if len(got.Prefixes) != 2 || got.Prefixes[0] != want[0] || got.Prefixes[1] != want[1] {
		t.Errorf("prefixes are %v, want %v", got.Prefixes, want)
	}
	inside, host := agenttest.LinkIn(t, w, "eth0"), agenttest.LinkIn(t, f.A, got.Device)
	must.Equal(t, got.MAC, model.MAC(inside.Attrs().HardwareAddr))
	want4 := agenttest.UnderlayMTU - 20 - 8 - 4 // the inner MTU of MPLS over UDP, the encapsulation that both nodes prefer
	if inside.Attrs().MTU != got.MTU || host.Attrs().MTU != netdev.HostMTU || got.MTU != want4 {
		t.Errorf("MTUs are %d and %d, the port's %d, want %d", inside.Attrs().MTU, host.Attrs().MTU, got.MTU, want4)
	}
	addresses := must.Get(f.A.Links.AddrList(host, netlink.FAMILY_ALL))(t)
	if len(addresses) != 0 {
		t.Errorf("the node's end has addresses: %v", addresses)
	}
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		routes := must.Get(netdev.Routes(w.Links, family))(t)
		if !netdev.HasDefault(routes) {
			t.Errorf("no default route in family %d: %v", family, routes)
		}
	}
	rows := must.Get(a.client.Vifs(context.Background(), 7))(t)
	if len(rows) != 1 || rows[0].Port != "web" || rows[0].Device != got.Device {
		t.Errorf("vif rows are %+v", rows)
	}
	must.Eventually(t, "a link instead of the first filter", a.linked)
	must.Get(a.client.DeletePort(context.Background(), "web"))(t)
	for s, name := range map[*netdev.Space]string{f.A: got.Device, w: "eth0"} {
		if l, err := s.Link(name); err != nil || l != nil {
			t.Errorf("%s still has %s (%v)", s.Name, name, err)
		}
	}
	if rows, err := a.client.Vifs(context.Background(), 7); err != nil || len(rows) != 0 {
		t.Errorf("vif rows after the deletion: %+v, %v", rows, err)
	}
}
