package fleet

import (
	"net/netip"
	"slices"
	"sync"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/vrouter/model"
)

// Each node gets a different address of the pool, or none if no address is free. A change of the pool replaces the addresses.
func TestEachNodeHasADifferentAddressOfThePool(t *testing.T) {
	f := open(t)
	apply(t, f, small())
	set := func(pool ...string) {
		t.Helper()
		_, err := f.UpdateNetwork(ctx(t), "red", func(n *model.Network) error {
			n.NodeAccess, n.NATPool = true, prefixes(pool...)
			return nil
		})
		must.Succeed(t, err)
		for _, node := range []string{"a", "b"} {
			reconcileAccess(t, f, node)
		}
	}
	expect := func(when string, want map[string][]string) {
		t.Helper()
		for node, addresses := range want {
			var got []string
			for _, p := range hostsOf(t, f, node) {
				for _, a := range p.Floating {
					got = append(got, a.String())
				}
			}
			if !slices.Equal(got, addresses) {
				t.Errorf("%s: node %s has the addresses %v, want %v", when, node, got, addresses)
			}
		}
	}
	add(t, f, port("x", "10.1.0.9"))
	y := port("y", "10.1.0.10")
	y.Node = "b"
	add(t, f, y)
	set()
	expect("without a pool", map[string][]string{"a": nil, "b": nil})
	set("203.0.113.0/31", "2001:db8::/127")
	expect("a pool of two addresses of each family", map[string][]string{"a": {"203.0.113.0", "2001:db8::"}, "b": {"203.0.113.1", "2001:db8::1"}})
	set("203.0.113.4/32")
	expect("a pool of one address", map[string][]string{"a": {"203.0.113.4"}, "b": nil})

	z := port("z", "10.1.0.200")
	z.Floating = []netip.Addr{netip.MustParseAddr("203.0.113.4")}
	if _, _, err := f.AddPort(ctx(t), model.PortRequest{Port: z}); !IsWhy(err, Exists) {
		t.Errorf("adding a port with the address of a node as its floating address: error %v, want %v", err, Exists)
	}
	set("203.0.113.4/31")
	expect("a pool of two addresses", map[string][]string{"a": {"203.0.113.4"}, "b": {"203.0.113.5"}})
	set("203.0.113.8/29")
	z.Floating[0] = netip.MustParseAddr("203.0.113.14")
	add(t, f, z)
	if _, err := f.UpdateNetwork(ctx(t), "red", func(n *model.Network) error { n.NATPool = nil; return nil }); !IsWhy(err, Invalid) {
		t.Errorf("removing a pool with a floating address in use: error %v, want %v", err, Invalid)
	}
}

// Nodes of a network with nat_ports share the addresses of the pool. Two nodes never have one share, even if their agents
// choose at the same time.
func TestNodesShareThePoolWithDifferentPorts(t *testing.T) {
	f, s := open(t), small()
	n := &s.Networks[0]
	n.NodeAccess, n.NATPool, n.NATPorts = true, prefixes("203.0.113.0/31", "2001:db8::/127"), 20000 // three nodes for each address
	nodes := []string{"a", "b", "c", "d", "e", "f", "g"}
	for i, name := range nodes[2:] {
		s.Nodes = append(s.Nodes, model.Node{Name: name, Underlay: []netip.Addr{netip.AddrFrom4([4]byte{192, 0, 2, byte(3 + i)})}})
	}
	apply(t, f, s)
	var all sync.WaitGroup
	for i, node := range nodes {
		p := port("w"+node, netip.AddrFrom4([4]byte{10, 1, 0, byte(100 + i)}).String())
		p.Node = node
		add(t, f, p)
	}
	for _, node := range nodes {
		all.Go(func() { reconcileAccess(t, f, node) })
	}
	all.Wait()
	used := map[netip.AddrPort]string{}
	without := 0
	for _, node := range nodes {
		p := hostsOf(t, f, node)[0]
		share := s.Networks[0].NodeShare(p)
		if len(share.Addresses) == 0 {
			without++
		}
		for _, a := range share.Addresses {
			at := netip.AddrPortFrom(a, share.FirstPort)
			if used[at] != "" || share.LastPort-share.FirstPort != 19999 {
				t.Errorf("node %s has the ports %d to %d of %s, as node %q", node, share.FirstPort, share.LastPort, a, used[at])
			}
			used[at] = node
		}
	}
	if len(used) != 12 || without != 1 {
		t.Errorf("the shares are %v, and %d nodes have none; want 6 nodes with a share of an IPv4 and an IPv6 address, and 1 without", used, without)
	}

	// Nodes get a share when the pool grows, and other addresses when they share them no more.
	update := func(change func(n *model.Network)) {
		t.Helper()
		_, err := f.UpdateNetwork(ctx(t), "red", func(n *model.Network) error { change(n); return nil })
		must.Succeed(t, err)
		for _, node := range nodes {
			reconcileAccess(t, f, node)
		}
	}
	before := hostsOf(t, f, "a")[0]
	update(func(n *model.Network) { n.NATPool = prefixes("203.0.113.0/30", "2001:db8::/126") })
	for _, node := range nodes {
		if p := hostsOf(t, f, node)[0]; p.NATSlot == 0 || len(p.Floating) > 0 {
			t.Errorf("after the pool has grown, node %s has share %d and the addresses %v", node, p.NATSlot, p.Floating)
		}
	}
	if after := hostsOf(t, f, "a")[0]; before.NATSlot > 0 && !after.Equal(before) {
		t.Errorf("the node's port was replaced: %+v, was %+v", after, before)
	}
	update(func(n *model.Network) { n.NATPorts, n.NATPool = 0, prefixes("203.0.113.0/28") })
	for _, node := range nodes {
		if p := hostsOf(t, f, node)[0]; p.NATSlot != 0 || len(p.Floating) != 1 {
			t.Errorf("without shared addresses, node %s has share %d and the addresses %v", node, p.NATSlot, p.Floating)
		}
	}
}
