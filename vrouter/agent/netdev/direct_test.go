package netdev

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"testing"

	"github.com/vishvananda/netlink"

	"windtunnel/internal/setup"
)

// Keep removes the labels of an earlier address, and adds a deleted label again. The next
// agent finds the labels and removes them.
func TestKeepMakesTheLabelsInTheFilterEqualToTheWantedLabels(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to create network namespaces")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("ip is not installed; get it with: " + setup.Command("ip"))
	}
	for _, kind := range []string{"bridge", "veth peer name f1"} {
		t.Run(kind, func(t *testing.T) {
			name := fmt.Sprintf("vr-labels-%d", os.Getpid())
			if out, err := exec.Command("ip", "netns", "add", name).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			defer exec.Command("ip", "netns", "del", name).Run()
			if out, err := exec.Command("sh", "-c", "ip -n "+name+" link add f0 type "+kind).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			s, err := Open(name)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			fab, err := s.Links.LinkByName("f0")
			if err != nil {
				t.Fatal(err)
			}
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
				if err := s.Links.NeighDel(l.entry()); err != nil {
					t.Fatal(err)
				}
				break
			}
			keep(d, old, 2)
			keep(d, now, 2)
			keep(&Labels{Space: s}, now, 0)
		})
	}
}
