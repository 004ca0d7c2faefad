package datapath

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/model"
)

func TestDiscardingNexthopsAndBareNetworksAreKept(t *testing.T) {
	d := shared(t)
	want := scene(7, 8, 9, model.MPLSoUDP, false)
	want.Nexthops[30] = fib.Nexthop{Type: fib.Discard}
	want.VRFs[30] = fib.VRF{}
	if _, err := d.Apply(want); err != nil {
		t.Fatal(err)
	}
	got, err := d.Dump()
	if diff := cmp.Diff(want, got, sameAddr, samePrefix); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	if c, err := d.Apply(want); err != nil || c != (Changes{}) {
		t.Errorf("the same again changed %+v, %v", c, err)
	}
	delete(want.Nexthops, 30)
	delete(want.VRFs, 30)
	if c, err := d.Apply(want); err != nil || c != (Changes{Deleted: 2}) {
		t.Errorf("%+v, %v; want 2 deleted", c, err)
	}
}

func TestTablesThatTheMapsCannotHoldAreRefusedWhole(t *testing.T) {
	d := shared(t)
	before := scene(7, 8, 9, model.MPLSoUDP, false)
	if _, err := d.Apply(before); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, says string
		change     func(*fib.Tables)
	}{
		{"unknown encapsulation", `"geneve"`, func(f *fib.Tables) {
			n := f.Nexthops[nhTunnel]
			n.Encapsulation = "geneve"
			f.Nexthops[nhTunnel] = n
		}},
		{"vif without a counter", "vif", func(f *fib.Tables) {
			v := f.Vifs[8]
			v.ID = small.Vifs + 1
			f.Vifs[8] = v
		}},
		{"the fabric's number", "vif", func(f *fib.Tables) {
			v := f.Vifs[8]
			v.ID = 0
			f.Vifs[8] = v
		}},
		{"two vifs of one number", "vif", func(f *fib.Tables) {
			v := f.Vifs[8]
			v.ID = f.Vifs[7].ID
			f.Vifs[8] = v
		}},
		{"no prefix", "invalid Prefix", func(f *fib.Tables) { f.Routes[fib.RouteKey{VRF: 1}] = fib.Route{Nexthop: 1} }},
		{"bits behind the prefix", "10.1.2.3/8", func(f *fib.Tables) {
			f.Routes[fib.RouteKey{VRF: 1, Prefix: netip.MustParsePrefix("10.1.2.3/8")}] = fib.Route{Nexthop: 1}
		}},
		{"IPv4 in IPv6's clothes", "::ffff:10.1.2.3", func(f *fib.Tables) {
			f.Routes[fib.RouteKey{VRF: 1, Prefix: netip.PrefixFrom(netip.MustParseAddr("::ffff:10.1.2.3"), 128)}] = fib.Route{Nexthop: 1}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			bad := scene(7, 8, 9, model.MPLSoUDP, false)
			c.change(&bad)
			if _, err := d.Apply(bad); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v", err)
			}
			if got, err := d.Dump(); err != nil || cmp.Diff(before, got, sameAddr, samePrefix) != "" {
				t.Errorf("the running state changed: %v", err)
			}
		})
	}
}
