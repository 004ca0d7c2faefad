package bgp

import (
	"net/netip"
	"reflect"
	"slices"
	"testing"

	"github.com/osrg/gobgp/v4/pkg/packet/bgp"

	"windtunnel/internal/lists"
	"windtunnel/vrouter/model"
)

// A table returns only the paths that have one of the targets.
func TestATableHasThePathsOfTargets(t *testing.T) {
	other, both := target("64512:7"), []model.RouteTarget{target("64512:7"), target("64512:1")}
	table := newTable(nil)
	table.Put(path("10.9.0.0/24", nil))
	table.Put(path("10.10.0.0/24", func(p *Path) { p.Targets = []model.RouteTarget{other} }))
	table.Put(path("10.11.0.0/24", func(p *Path) { p.Targets = both }))
	for _, c := range []struct {
		targets map[model.RouteTarget]bool
		want    []string
	}{
		{nil, []string{"10.9.0.0/24", "10.10.0.0/24", "10.11.0.0/24"}},
		{map[model.RouteTarget]bool{}, nil},
		{map[model.RouteTarget]bool{other: true}, []string{"10.10.0.0/24", "10.11.0.0/24"}},
		{map[model.RouteTarget]bool{target("64512:1"): true}, []string{"10.9.0.0/24", "10.11.0.0/24"}},
	} {
		paths, _ := table.PathsTo(c.targets)
		if c.targets == nil {
			paths = table.Paths()
		}
		for i, p := range paths {
			if len(paths) != len(c.want) || p.Destination() != c.want[i] {
				t.Errorf("for the targets %v, path %d of %d leads to %s, want the paths to %v", c.targets, i, len(paths), p.Destination(), c.want)
			}
		}
		if len(paths) != len(c.want) {
			t.Errorf("for the targets %v, the table has %d paths, want %d", c.targets, len(paths), len(c.want))
		}
	}
}

// A table returns the paths as they were put, whatever their kind and attributes, and forgets what they had in common
// when none is left.
func TestATableReturnsPathsUnchanged(t *testing.T) {
	mac := model.MAC{2, 5: 1}
	all := []Path{
		path("10.9.0.0/24", nil),
		path("10.9.0.0/24", func(p *Path) { p.Neighbor, p.LocalPref = netip.MustParseAddr("2001:db8::1"), 200 }),
		path("0.0.0.0/0", func(p *Path) { p.MED, p.ASPath, p.External, p.Stale = 7, 3, true, true }),
		path("::/0", func(p *Path) {
			p.Family, p.Tunnels = model.VPNv6, []bgp.TunnelType{bgp.TUNNEL_TYPE_GRE, bgp.TUNNEL_TYPE_VXLAN}
		}),
		path("10.9.1.0/24", func(p *Path) { p.LongLivedStale = true }),
		path("10.9.2.0/24", func(p *Path) { p.Kept = true }),
		path("fd00:9::1/128", func(p *Path) { p.Family, p.Kind, p.RouterMAC, p.Targets = model.EVPN, Prefix, mac, nil }),
		path("10.9.0.9/32", func(p *Path) { p.Family, p.Kind, p.MAC, p.RoutedLabel = model.EVPN, Station, mac, 9 }),
		path("10.9.0.9/32", func(p *Path) {
			p.Family, p.Kind, p.MAC, p.Prefix, p.Unusable = model.EVPN, Station, mac, netip.Prefix{}, "no"
			p.Communities = []string{"64512:77", "no-export"}
		}),
		path("10.9.0.9/32", func(p *Path) {
			p.Family, p.Kind, p.Prefix, p.Origin = model.EVPN, Multicast, netip.Prefix{}, netip.MustParseAddr("192.0.2.9")
		}),
	}
	table := newTable(nil)
	for range 2 { // the second time replaces them
		for _, p := range all {
			table.Put(p)
		}
	}
	slices.SortFunc(all, func(a, b Path) int { return compare(&a, &b) })
	if got := table.Paths(); !reflect.DeepEqual(got, all) {
		t.Errorf("the table has the paths\n%+v, want\n%+v", got, all)
	}
	if n, stale := table.Count(all[0].Neighbor); n != len(all)-1 || stale != 3 {
		t.Errorf("the neighbour has %d paths, %d of them stale; want %d and 3", n, stale, len(all)-1)
	}
	for _, p := range all {
		if !table.Withdraw(p.Key()) || table.Withdraw(p.Key()) {
			t.Errorf("the first withdrawal of the path to %s removes no path, or the second does", p.Destination())
		}
	}
	if len(table.paths)+len(table.numbers)+len(table.hops)+len(table.changed) > 0 || len(table.free) != len(table.sets) {
		t.Errorf("an empty table has %d paths, %d attributes and %d next hops; %d of %d sets are free", len(table.paths), len(table.numbers), len(table.hops), len(table.free), len(table.sets))
	}
}

// Keep must keep only the paths of configured neighbours and address families.
func TestATableKeepsThePathsOfTheNodesNeighborsAndFamilies(t *testing.T) {
	other := netip.MustParseAddr("192.0.2.77")
	stale := []Path{
		path("10.9.0.0/24", nil),
		path("fd00:9::/64", func(p *Path) { p.Family = model.VPNv6 }),
		path("10.10.0.0/24", func(p *Path) { p.Neighbor = other }),
	}
	here := []model.Neighbor{{Address: stale[0].Neighbor}}
	for _, c := range []struct {
		node model.BGP
		want []string
	}{
		{model.BGP{Neighbors: append(here, model.Neighbor{Address: other})}, []string{"10.9.0.0/24", "10.10.0.0/24", "fd00:9::/64"}},
		{model.BGP{Neighbors: here}, []string{"10.9.0.0/24", "fd00:9::/64"}},
		{model.BGP{Neighbors: here, Families: []model.BGPFamily{model.VPNv4, model.EVPN}}, []string{"10.9.0.0/24"}},
	} {
		table := newTable(stale)
		table.Keep(&c.node)
		if got := lists.Map(table.Paths(), func(p Path) string { return p.Destination() }); !slices.Equal(got, c.want) {
			t.Errorf("with the neighbours %v and the families %v, the table has the paths %v, want %v", c.node.Neighbors, c.node.Families, got, c.want)
		}
	}
}
