package datapath

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"windtunnel/internal/must"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
)

// small limits keep the tests' maps small.
var small = Limits{Routes: 4096, Prefixes: 1024, Bridge: 1024, Nexthops: 256, Vifs: 64, Labels: 256, Remotes: 64, Flows: 1024}

// pins mounts a bpffs for the test.
func pins(t testing.TB) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: loads eBPF programs")
	}
	dir := filepath.Join(t.TempDir(), "bpf")
	path := must.Get(MountPins(dir))(t)
	t.Cleanup(func() {
		if err := RemovePins(path); err != nil {
			t.Error(err)
		}
		if err := UnmountPins(dir); err != nil {
			t.Error(err)
		}
	})
	return path
}

func open(t testing.TB, o Options) *Datapath {
	t.Helper()
	if o.Limits == (Limits{}) {
		o.Limits = small
	}
	d := must.Get(Open(o))(t)
	t.Cleanup(func() { d.Close() })
	return d
}

// enterSpace moves the test to a network namespace of its own, with `n` veth
// pairs v0-p0, v1-p1 …, all up.
func enterSpace(t testing.TB, n int) []int {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: makes a network namespace")
	}
	runtime.LockOSThread()
	home := must.Get(netns.Get())(t)
	ns := must.Get(netns.New())(t)
	t.Cleanup(func() {
		if err := netns.Set(home); err != nil {
			panic(err)
		}
		ns.Close()
		home.Close()
		runtime.UnlockOSThread()
	})
	var indexes []int
	for i := range n {
		attrs := netlink.NewLinkAttrs()
		attrs.Name = fmt.Sprintf("v%d", i)
		must.Succeed(t, netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: fmt.Sprintf("p%d", i)}))
		for _, name := range []string{fmt.Sprintf("p%d", i), attrs.Name} {
			l := must.Get(netlink.LinkByName(name))(t)
			must.Succeed(t, netlink.LinkSetUp(l))
			if name == attrs.Name {
				indexes = append(indexes, l.Attrs().Index)
			}
		}
	}
	return indexes
}

var (
	macA   = model.MAC{2, 0, 0, 0, 0, 0xa}
	macB   = model.MAC{2, 0, 0, 0, 0, 0xb}
	local  = netip.MustParseAddr("172.31.0.1")
	local6 = netip.MustParseAddr("fd31::1")
	far    = netip.MustParseAddr("172.31.0.2")
	far6   = netip.MustParseAddr("fd31::2")
	addrA  = netip.MustParseAddr("10.1.0.10")
	addrB  = netip.MustParseAddr("10.1.0.11")
	addrA6 = netip.MustParseAddr("fd00:1::10")
	addrB6 = netip.MustParseAddr("fd00:1::11")
)

// Nexthops of scene.
const (
	nhVif uint32 = iota + 1
	nhTunnel
	nhTunnelEthernet
	nhVRF
	nhL2
	nhFlood
	nhGateway
	nhVif2
)

// scene is a node with one workload (a) of network 1 on device vif, another (c)
// on device vif2, and one elsewhere (b), over device fabric.
func scene(vif, vif2, fabric int, encap model.Encapsulation, v6 bool) fib.Tables {
	path := layout.PathOf(local, far, far, uint32(fabric))
	if v6 {
		path = layout.PathOf(local6, far6, far6, uint32(fabric))
	}
	label, ethernet, port := uint32(18), uint32(19), uint16(6635)
	switch encap {
	case model.VXLAN:
		label, ethernet, port = 1001, 1001, 4789
	case model.MPLSoGRE:
		port = 0
	}
	tunnel := layout.Nexthop{Type: layout.Tunnel, Encap: layout.Number(encap), MTU: 1430, Flags: layout.NexthopDF, Port: layout.Network16(port), DMAC: model.RouterMAC}
	tunnel.SetPaths(path)
	peer := layout.Remote{ID: 1, Nexthop: nhTunnel, Ethernet: nhTunnelEthernet, Encaps: layout.Bits(model.DefaultEncapsulations...)}
	tunnel.Remote = peer.ID
	macC := model.MAC{2, 0, 0, 0, 0, 0xc}
	addrC := netip.MustParseAddr("10.1.0.12")
	host := func(a netip.Addr) fib.RouteKey {
		return fib.RouteKey{VRF: 1, Prefix: netip.PrefixFrom(a, a.BitLen())}
	}
	const both = layout.VifL2 | layout.VifL3
	gateway4, gateway6 := layout.Network4(netip.MustParseAddr("10.1.0.1")), layout.AddressOf(netip.MustParseAddr("fd00:1::1"))
	a := layout.Vif{ID: 1, VRF: 1, Nexthop: nhVif, Flags: both, MTU: 1430, MAC: macA, RouterMAC: model.RouterMAC, Gateway4: gateway4, Gateway6: gateway6}
	a.SetSources([]netip.Prefix{netip.PrefixFrom(addrA, 32), netip.PrefixFrom(addrA6, 128)})
	c := layout.Vif{ID: 2, VRF: 1, Nexthop: nhVif2, Flags: both, MTU: 1430, MAC: macC, RouterMAC: model.RouterMAC, Gateway4: gateway4}
	c.SetSources([]netip.Prefix{netip.PrefixFrom(addrC, 32)})
	f := fib.Tables{
		Settings: layout.NodeSettings{
			VXLANPort: layout.Network16(4789), Flags: layout.SettingsMPLSUDP | layout.SettingsMPLSGRE | layout.SettingsStrict,
			Local4: [4]uint32{layout.Network4(local)}, Local6: [4]layout.Address{layout.AddressOf(local6)},
		},
		Vifs: map[uint32]layout.Vif{uint32(vif): a, uint32(vif2): c},
		VRFs: map[uint32]layout.VRF{1: {Flood: nhFlood, Flags: both, RouterMAC: model.RouterMAC, Prefix6: layout.Words96(addrA6)}},
		Nexthops: map[uint32]layout.Nexthop{
			nhVif:            {Type: layout.Encap, VRF: 1, Vif: 1, Oif: uint32(vif), DMAC: macA, SMAC: model.RouterMAC, MTU: 1430},
			nhVif2:           {Type: layout.Encap, VRF: 1, Vif: 2, Oif: uint32(vif2), DMAC: macC, SMAC: model.RouterMAC, MTU: 1430},
			nhTunnel:         tunnel,
			nhTunnelEthernet: tunnel,
			nhVRF:            {Type: layout.VRFTranslate, VRF: 1},
			nhL2:             {Type: layout.L2Receive, VRF: 1},
			nhFlood:          {Type: layout.Composite, VRF: 1, Flags: layout.NexthopMulticast},
			nhGateway:        {Type: layout.Receive, VRF: 1},
		},
		Members: map[layout.MemberKey]layout.Member{},
		Routes: map[fib.RouteKey]layout.Route{
			host(addrA): {Nexthop: nhVif}, host(addrA6): {Nexthop: nhVif}, host(addrC): {Nexthop: nhVif2},
			host(addrB): {Nexthop: nhTunnel, Label: label, MAC: macB, Flags: layout.RouteMAC}, host(addrB6): {Nexthop: nhTunnel, Label: label},
			host(netip.MustParseAddr("10.1.0.1")):                           {Nexthop: nhGateway},
			{VRF: 1, Prefix: netip.MustParsePrefix("10.9.0.0/16")}:          {Nexthop: nhTunnel, Label: label},
			{VRF: 1, Prefix: netip.MustParsePrefix("fd00:9::/32").Masked()}: {Nexthop: nhTunnel, Label: label},
		},
		Bridge: map[layout.BridgeKey]layout.BridgeEntry{
			{VRF: 1, MAC: macA}: {Nexthop: nhVif}, {VRF: 1, MAC: macC}: {Nexthop: nhVif2},
			{VRF: 1, MAC: macB}: {Nexthop: nhTunnelEthernet, Label: ethernet},
		},
		ILM:     map[uint32]layout.Target{18: {Nexthop: nhVRF}, 19: {Nexthop: nhL2, Ethernet: 1}},
		VNIs:    map[uint32]layout.Target{1001: {Nexthop: nhL2, Ethernet: 1}},
		Remotes: map[layout.Address]layout.Remote{layout.AddressOf(far): peer, layout.AddressOf(far6): peer},
		Senders: map[layout.SenderKey]layout.Sender{},
		NATs:    map[uint32]layout.NAT{}, Floatings: map[layout.FloatingKey]layout.Floating{},
		Policies: map[uint32]fib.Policy{}, Sets: fib.Sets{Identities: map[fib.RouteKey]layout.Identity{}, Allows: map[fib.Allow]bool{}},
	}
	f.SetMembers(nhFlood, []layout.Member{{Nexthop: nhVif}, {Nexthop: nhVif2}, {Nexthop: nhTunnelEthernet, Label: ethernet}})
	return f
}
