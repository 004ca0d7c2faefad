package e2e

import (
	"context"
	"net/netip"
	"os/exec"
	"testing"

	"golang.org/x/sync/errgroup"

	"windtunnel/vrouter/model"
)

// The tests of attack*_test.go are named for what must not happen. The table of
// docs/security.md names them.

// itself is the node as an end of traffic on the underlay.
func (n *node) itself() *workload {
	return &workload{bed: n.bed, ns: n.ns, port: model.Port{Name: "node " + n.name, IPs: []netip.Addr{n.v4, n.v6}}}
}

// ip runs the command ip in a node's namespace.
func (n *node) ip(args ...string) {
	n.bed.t.Helper()
	if out, err := exec.Command("ip", append([]string{"-n", n.space}, args...)...).CombinedOutput(); err != nil {
		n.bed.t.Fatalf("ip %v on node %s: %v: %s", args, n.name, err, out)
	}
}

// threeNodes is a bed of network red with x on the first node and y on the
// second; z is on the third.
func threeNodes(t *testing.T, encap model.Encapsulation, forwarding model.Forwarding) (b *bed, x, y, z *workload) {
	b = newBed(t, options{nodes: 3})
	b.state.Nodes = b.nodesOf(false, encap)
	b.state.Networks = []model.Network{{Name: "red", ID: 1, VNI: 1001, Forwarding: forwarding, Subnets: subnets("10.1.0.0/16", "fd00:1::/64")}}
	x = b.workload("x", "red", 0, "10.1.0.10", "fd00:1::10")
	y = b.workload("y", "red", 1, "10.1.0.11", "fd00:1::11")
	z = b.workload("z", "red", 2, "10.1.0.12", "fd00:1::12")
	return b, x, y, z
}

// open is a policy that allows everything, which a node's own port needs to be
// reached.
var open = model.Policy{Name: "open", Rules: []model.Rule{{Direction: model.Ingress, Action: model.Allow}, {Direction: model.Egress, Action: model.Allow}}}

// A packet that a node received through a tunnel and forwards on the underlay
// has what that node's XDP left in its buffer. The next node must not believe it.
func TestAForwardedPacketIsNotTakenForATunnels(t *testing.T) {
	for _, encap := range encaps {
		t.Run(string(encap), func(t *testing.T) {
			t.Parallel()
			b, x, _, _ := threeNodes(t, encap, model.L3)
			router, server := b.nodes[1], b.nodes[2]
			b.state.Policies = []model.Policy{open}
			b.state.Ports = append(b.state.Ports, model.Port{
				Name: "router", Network: "red", Node: router.name, MAC: model.MAC{2, 0, 0, 0, 9, 9}, IPs: addresses("10.1.0.5"),
				Attach: model.Attachment{Host: true}, Policies: []string{"open"}, AllowSources: subnets("172.30.0.0/24"),
			})
			b.state.Routes = []model.Route{{Network: "red", Prefix: netip.PrefixFrom(server.v4, 32), Via: []model.Via{{Port: "router"}}}}
			b.up()
			if out, err := exec.Command("ip", "netns", "exec", router.space, "sysctl", "-w", "net.ipv4.ip_forward=1").CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			server.ip("route", "add", x.ip(4).String(), "via", router.v4.String())
			for range 5 {
				if err := transfer(x, server.itself(), 4, 1<<20); err != nil {
					t.Errorf("%v; drops on the server's node %v", err, server.drops())
				}
				if err := transfer(server.itself(), x, 4, 1<<20); err != nil {
					t.Errorf("%v; drops on the server's node %v", err, server.drops())
				}
			}
			if drops := server.drops(); drops["no_nexthop"]+drops["reflected"]+drops["no_route"] != 0 {
				t.Errorf("the server's node took plain packets for a tunnel's: %v", drops)
			}
		})
	}
}

// Plain traffic between nodes passes beside the overlay's.
func TestPlainTrafficOfNodesIsNotDropped(t *testing.T) {
	b := newBed(t, options{})
	x, y := pair(b, model.L3, false, model.MPLSoUDP)
	ctx, stop := context.WithCancel(context.Background())
	var g errgroup.Group
	g.Go(func() error { _, _, err := flow10k(ctx, x, y); return err })
	g.Go(func() error {
		for ctx.Err() == nil {
			if err := transfer(y, x, 4, 4<<20); err != nil {
				return err
			}
		}
		return nil
	})
	for range 10 {
		for _, ends := range [][2]*node{{b.nodes[0], b.nodes[1]}, {b.nodes[1], b.nodes[0]}} {
			if err := transfer(ends[0].itself(), ends[1].itself(), 4, 1<<20); err != nil {
				t.Error(err)
			}
		}
	}
	stop()
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
	for _, n := range b.nodes {
		if drops := n.drops(); drops["no_nexthop"] != 0 {
			t.Errorf("node %s: %v", n.name, drops)
		}
	}
}
