package e2e

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/direct"
	"windtunnel/vrouter/model"
)

// Two nodes receive the labels of one network only. When a network with a lower id is added,
// the present network uses a tunnel, and then its label is removed from the filters. Nothing is
// lost. When the added network is removed, the present network is sent directly again.
func TestANetworkBeyondTheLimitOfLabelsUsesATunnel(t *testing.T) {
	must.Long(t)
	t.Parallel()
	b := newBed(t, options{config: map[string]any{"limits": limits(map[string]int{"link_labels": 1})}})
	x, y := directPair(b, model.L3, model.VXLAN)
	must.Succeed(t, datagram(x, y, 4, 64)) // neighbours resolved
	datagrams, end := count(t, x, y), openTransfer(x, y, 4)

	before := b.state
	b.state.Networks = append(b.state.Networks[:1:1], model.Network{Name: "amber", ID: 100, VNI: 1002, Forwarding: model.L3, Subnets: subnets("10.2.0.0/16", "fd00:2::/64")})
	v, w := b.workload("v", "amber", 0, "10.2.0.10", "fd00:2::10"), b.workload("w", "amber", 1, "10.2.0.11", "fd00:2::11")
	b.apply()
	for i, n := range b.nodes {
		n.awaitWays(b.nodes[1-i].name, "direct", "vxlan")
		n.awaitRoute("red", x, y, "vxlan")
		n.awaitRoute("amber", v, w, "direct")
		n.awaitFilter(100, 291)
		if out := n.run("doctor"); !strings.Contains(out, "labels of 1 of the 2 networks") || !strings.Contains(out, "next encapsulation: red") {
			t.Errorf("doctor of node %s does not show that network red is beyond the limit:\n%s", n.name, out)
		}
	}
	must.Succeed(t, datagram(v, w, 4, 64))
	was := b.nodes[0].sentDirectly("red")
	time.Sleep(200 * time.Millisecond)
	if now := b.nodes[0].sentDirectly("red"); now != was {
		t.Errorf("%d packets of network red had labels, want none", now-was)
	}

	b.state = before
	b.apply()
	for i, n := range b.nodes {
		n.awaitWays(b.nodes[1-i].name, "direct")
		n.awaitFilter(291, 100)
	}
	must.Succeed(t, end())
	datagrams.lost(t)
}

// awaitRoute waits until the node sends packets of a network to the workload on the other node
// with an encapsulation.
func (n *node) awaitRoute(network string, a, b *workload, encapsulation string) {
	n.bed.t.Helper()
	to := a
	if a.port.Node == n.name {
		to = b
	}
	soon(n.bed.t, fmt.Sprintf("node %s sends packets of network %s by %s", n.name, network, encapsulation), func() error {
		names := map[uint32]string{}
		for _, nh := range table(n, (*api.Client).Nexthops) {
			names[nh.ID] = nh.Name
		}
		var got string
		for _, r := range table(n, (*api.Client).Routes) {
			if r.Network == network && r.Destination == netip.PrefixFrom(to.ip(4), 32) {
				got = names[r.Nexthop]
			}
		}
		if !strings.HasSuffix(got, " "+encapsulation) {
			return fmt.Errorf("it uses %q", got)
		}
		return nil
	})
}

// awaitFilter waits until the filter of the fabric device has the label of network has, and
// not that of network lacks.
func (n *node) awaitFilter(has, lacks uint32) {
	n.bed.t.Helper()
	// The first check after 15 s removes a label. On a busy machine a check takes longer, and the agent checks
	// less often.
	soon(n.bed.t, fmt.Sprintf("the filter of node %s has the label of network %d and not that of network %d", n.name, has, lacks), func() error {
		filters := n.filters()
		if !strings.Contains(filters, direct.Label(has, n.v4).String()) || strings.Contains(filters, direct.Label(lacks, n.v4).String()) {
			return errors.New(filters)
		}
		return nil
	})
}

// sentDirectly returns the number of packets of a network that the node has sent with labels.
func (n *node) sentDirectly(network string) uint64 {
	for _, s := range answer(n, (*api.Client).VRFStats) {
		if s.Network == network {
			return s.ByEncapsulation["direct"].TxPackets
		}
	}
	return 0
}
