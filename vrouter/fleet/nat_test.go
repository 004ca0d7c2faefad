package fleet

import (
	"net/netip"
	"slices"
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
