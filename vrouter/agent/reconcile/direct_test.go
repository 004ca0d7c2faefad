package reconcile

import (
	"testing"

	"github.com/vishvananda/netlink"

	"windtunnel/vrouter/datapath"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
)

// XDP is attached only if a tunnel that carries more than the fallback of direct needs it.
func TestUnwantedXDP(t *testing.T) {
	tunnel := func(e model.Encapsulation, fallback uint32) layout.Nexthop {
		return layout.Nexthop{Type: layout.Tunnel, Encap: layout.Number(e), Fallback: fallback}
	}
	for _, c := range []struct {
		what     string
		nexthops map[uint32]layout.Nexthop
		merges   bool // the kernel merges VXLAN packets
		again    bool // XDP was attached again after it was detached because of direct
		want     string
	}{
		{"no tunnel", nil, false, false, ""},
		{"no tunnel, merged", nil, true, false, noXDPWhereMerged},
		{"local workloads", map[uint32]layout.Nexthop{1: {Type: layout.Encap}}, true, false, noXDPWhereMerged},
		{"VXLAN", map[uint32]layout.Nexthop{1: tunnel(model.VXLAN, 0)}, false, false, ""},
		{"VXLAN, merged", map[uint32]layout.Nexthop{1: tunnel(model.VXLAN, 0)}, true, false, noXDPWhereMerged},
		{"VXLAN and MPLS", map[uint32]layout.Nexthop{1: tunnel(model.VXLAN, 0), 2: tunnel(model.MPLSoUDP, 0)}, true, false, ""},
		{"direct", map[uint32]layout.Nexthop{1: tunnel(model.Direct, 0)}, false, false, noXDPWhereDirect},
		{"direct and VXLAN", map[uint32]layout.Nexthop{1: tunnel(model.Direct, 0), 2: tunnel(model.VXLAN, 0)}, false, false, ""},
		{"direct and VXLAN, merged", map[uint32]layout.Nexthop{1: tunnel(model.Direct, 0), 2: tunnel(model.VXLAN, 0)}, true, false, noXDPWhereDirect},
		{"MPLS as fallback", map[uint32]layout.Nexthop{1: tunnel(model.Translated, 2), 2: tunnel(model.MPLSoGRE, 0)}, true, false, noXDPWhereDirect},
		{"MPLS as fallback, and MPLS", map[uint32]layout.Nexthop{1: tunnel(model.Direct, 2), 2: tunnel(model.MPLSoGRE, 0), 3: tunnel(model.MPLSoGRE, 0)}, true, false, ""},
		{"direct, again", map[uint32]layout.Nexthop{1: tunnel(model.Direct, 0)}, true, true, ""},
		{"VXLAN, merged, again", map[uint32]layout.Nexthop{1: tunnel(model.VXLAN, 0)}, true, true, ""},
	} {
		p := &Pass{r: &Reconciler{xdpAgain: c.again}, merges: c.merges, Compiled: &fib.Compiled{Tables: fib.Tables{Nexthops: c.nexthops}}}
		if got := p.unwantedXDP(nil); got != c.want {
			t.Errorf("%s: the reason against XDP is %q, want %q", c.what, got, c.want)
		}
	}
}

// XDP does not see the tags that a driver keeps beside the frame: it would decapsulate packets of a
// VLAN device.
func TestNoXDPUnderAVLANDeviceOfTheFabric(t *testing.T) {
	below := FabricDevice{Link: &netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Name: "fab", Index: 7}}}
	other := FabricDevice{Link: &netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Name: "nic", Index: 8}}}
	vlan := FabricDevice{Link: &netlink.Vlan{LinkAttrs: netlink.LinkAttrs{Name: "fab.100", Index: 9, ParentIndex: 7}}}
	p := &Pass{r: &Reconciler{}, Compiled: &fib.Compiled{}, Fabric: []FabricDevice{below, other, vlan}}
	for i, want := range []string{noXDPUnderVLAN + "fab.100", "", ""} {
		if got := p.unwantedXDP(&p.Fabric[i]); got != want {
			t.Errorf("%s: the reason against XDP is %q, want %q", p.Fabric[i].Link.Attrs().Name, got, want)
		}
	}
}

// If only the reason against XDP changes, the programs are not attached again.
func TestAnotherReasonAgainstXDPDoesNotAttachThePrograms(t *testing.T) {
	device := &netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Name: "fab", Index: 7}}
	tables := func(e model.Encapsulation) *fib.Compiled {
		return &fib.Compiled{Tables: fib.Tables{Nexthops: map[uint32]layout.Nexthop{1: {Type: layout.Tunnel, Encap: layout.Number(e)}}}}
	}
	last := FabricDevice{Link: device, Fabric: datapath.Fabric{Mode: "tcx", Why: noXDPWhereMerged}, NoXDP: noXDPWhereMerged}
	there := map[int]datapath.Attachment{7: {Ifindex: 7, Kind: datapath.KindFabric, Mode: "tcx", Current: true}}
	r := &Reconciler{Last: &Pass{Fabric: []FabricDevice{last}}} // without Programs: to attach would panic
	for _, c := range []struct {
		encapsulation model.Encapsulation
		want          string
	}{{model.Direct, noXDPWhereDirect}, {model.VXLAN, noXDPWhereMerged}, {model.VXLAN, noXDPWhereMerged}} {
		p := &Pass{r: r, merges: true, Compiled: tables(c.encapsulation), Fabric: []FabricDevice{{Link: device}}}
		p.attachFabric(&p.Fabric[0], there)
		if f := p.Fabric[0]; f.NoXDP != c.want || f.Why != c.want || f.Mode != "tcx" {
			t.Errorf("with %s, the reason against XDP is %q, shown as %q, and the mode %q; want %q and tcx", c.encapsulation, f.NoXDP, f.Why, f.Mode, c.want)
		}
		r.Last = p
	}
}
