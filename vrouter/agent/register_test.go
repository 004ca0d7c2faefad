package agent

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/vishvananda/netlink"

	"windtunnel/internal/must"
	"windtunnel/vrouter/agent/agenttest"
	"windtunnel/vrouter/agent/follow"
	"windtunnel/vrouter/agent/netdev"
)

// A node that added itself to the store changes its address there (DHCP). It has no address that
// moves between nodes, so that a new node can have it.
func TestANodeKeepsTheAddressOfItsEntry(t *testing.T) {
	t.Parallel()
	fleet := agenttest.NewFleet(t)
	const moving = "172.31.0.77"
	for _, prefix := range []string{"172.31.0.100/24", moving + "/32", "fd31::77/128"} { // the first is secondary
		agenttest.Addressed(t, fleet.A, "fab0", prefix)
	}
	agenttest.Joined(t, fleet.A, fleet.B, "st0", "st0", 1500) // the way to the store
	agenttest.Addressed(t, fleet.A, "st0", "10.99.0.1/24")
	agenttest.Addressed(t, fleet.B, "st0", "10.99.0.2/24")
	c := fleet.Config("a")
	c.Store, c.Fabric, c.StoreListen, c.StoreInsecure = "embedded", []string{"fab0"}, "10.99.0.1:2379", true
	a := start(t, c)
	is := func(all ...string) {
		t.Helper()
		var want []netip.Addr
		for _, a := range all {
			want = append(want, netip.MustParseAddr(a))
		}
		must.Eventually(t, "the entry of node a", func() error {
			s, err := a.client.State(context.Background())
			if err == nil && (len(s.Nodes) == 0 || !slices.Equal(s.Nodes[0].Underlay, want)) {
				err = fmt.Errorf("the nodes are %+v, want the addresses %s", s.Nodes, want)
			}
			return err
		})
	}
	is("172.31.0.1")

	second := fleet.Config("b")
	second.Store, second.Underlay = "etcd+insecure://10.99.0.1:2379", []netip.Addr{netip.MustParseAddr("172.31.0.1")}
	t.Cleanup(func() {
		must.Get(follow.LeaveFleet(context.Background(), second))(t)
	})
	b := start(t, second)
	must.Eventually(t, "the status", func() error { return b.complains("cannot add this node", `already used by node "a"`) })

	link := agenttest.LinkIn(t, fleet.A, "fab0")
	remove := func(prefix string) {
		t.Helper()
		must.Succeed(t, fleet.A.Links.AddrDel(link, &netlink.Addr{IPNet: netdev.IPNet(netip.MustParsePrefix(prefix))}))
	}
	for _, prefix := range []string{"172.31.0.100/24", moving + "/32", "172.31.0.1/24"} {
		remove(prefix)
	}
	agenttest.Addressed(t, fleet.A, "fab0", "172.31.0.9/24")
	is("172.31.0.9")
	must.Eventually(t, "the status of node b", func() error {
		if p := b.problemOf(t, "node", "b"); p.Text != "" {
			return fmt.Errorf("node b has the problem %s", p.Text)
		}
		return nil
	})
	// An address that is only away for a while.
	agenttest.Addressed(t, fleet.A, "fab0", "172.31.1.9/24")
	remove("172.31.0.9/24")
	is("172.31.1.9")
	agenttest.Addressed(t, fleet.A, "fab0", "172.31.0.9/24")
	is("172.31.1.9", "172.31.0.9")
}
