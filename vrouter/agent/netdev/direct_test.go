package netdev

import (
	"net/netip"
	"testing"

	"github.com/vishvananda/netlink"

	"windtunnel/internal/must"
)

// Keep removes the labels of an earlier address, and adds a deleted label again. The next
// agent finds the labels and removes them.
func TestKeepMakesTheLabelsInTheFilterEqualToTheWantedLabels(t *testing.T) {
	for _, kind := range []string{"bridge", "veth peer name f1"} {
		t.Run(kind, func(t *testing.T) {
			s, ip := testSpace(t)
			ip("link add f0 type " + kind)
			fab := must.Get(s.Links.LinkByName("f0"))(t)
			old, now := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.5")
			d, fabric := &Labels{Space: s}, []netlink.Link{fab}
			keep := func(d *Labels, a netip.Addr, want int) {
				t.Helper()
				var links []EthernetLink
				if want > 0 {
					links = []EthernetLink{{fab.Attrs().Index, a, netip.PrefixFrom(a, 24).Masked()}}
				}
				if err := d.Keep(fabric, []netip.Addr{a}, links, []uint32{7}, nil, true); err != nil {
					t.Error(err)
				}
				if has, err := d.list(fabric, []netip.Addr{old, now}); err != nil || len(has) != want {
					t.Errorf("the filter has %v (%v), want %d labels", has, err, want)
				}
			}
			keep(d, old, 2)
			for l := range d.kept {
				must.Succeed(t, s.Links.NeighDel(l.entry()))
				break
			}
			keep(d, old, 2)
			keep(d, now, 2)
			keep(&Labels{Space: s}, now, 0)
		})
	}
}
