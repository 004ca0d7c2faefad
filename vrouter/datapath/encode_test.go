package datapath

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"windtunnel/internal/must"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
)

func TestTablesThatTheMapsCannotHoldAreRefusedWhole(t *testing.T) {
	d := shared(t)
	before := scene(7, 8, 9, model.MPLSoUDP, false)
	must.Get(d.Apply(before))(t)
	for _, c := range []struct {
		name, says string
		change     func(*fib.Tables)
	}{
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
		{"no prefix", "invalid Prefix", func(f *fib.Tables) { f.Routes[fib.RouteKey{VRF: 1}] = layout.Route{Nexthop: 1} }},
		{"bits behind the prefix", "10.1.2.3/8", func(f *fib.Tables) {
			f.Routes[fib.RouteKey{VRF: 1, Prefix: netip.MustParsePrefix("10.1.2.3/8")}] = layout.Route{Nexthop: 1}
		}},
		{"IPv4 in IPv6's clothes", "::ffff:10.1.2.3", func(f *fib.Tables) {
			f.Routes[fib.RouteKey{VRF: 1, Prefix: netip.PrefixFrom(netip.MustParseAddr("::ffff:10.1.2.3"), 128)}] = layout.Route{Nexthop: 1}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			bad := scene(7, 8, 9, model.MPLSoUDP, false)
			c.change(&bad)
			_, err := d.Apply(bad)
			must.Fail(t, err, c.says)
			if got, err := d.Dump(); err != nil || cmp.Diff(before, got, sameAddr, samePrefix) != "" {
				t.Errorf("the running state changed: %v", err)
			}
		})
	}
}
