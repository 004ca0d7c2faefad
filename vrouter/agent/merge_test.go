package agent

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"windtunnel/internal/must"
	"windtunnel/vrouter/agent/agenttest"
	"windtunnel/vrouter/agent/netdev"
	"windtunnel/vrouter/model"
)

// The kernel merges VXLAN packets on each node that accepts VXLAN. XDP is attached only if a
// tunnel of the node uses MPLS. Links are not tested here: no agent runs on node b.
func TestXDPIsAttachedOnlyForMPLS(t *testing.T) {
	f := agenttest.NewFleet(t)
	a := start(t, f.Config("a"))
	workloads := map[string]*netdev.Space{"a1": agenttest.NewSpace(t, "a1"), "b1": f.B}
	only := func(e ...model.Encapsulation) []model.Encapsulation { return e }
	for _, c := range []struct {
		what      string
		here, far []model.Encapsulation
		mode      string
	}{
		{"the default on both nodes", model.DefaultEncapsulations, model.DefaultEncapsulations, "tcx"},
		{"the other node offers MPLS only", model.DefaultEncapsulations, only(model.MPLSoUDP), "xdp+tcx"},
		{"VXLAN before MPLS", only(model.VXLAN, model.MPLSoGRE), only(model.VXLAN, model.MPLSoGRE), "tcx"},
		{"MPLS before VXLAN", only(model.MPLSoGRE, model.VXLAN), only(model.MPLSoGRE, model.VXLAN), "xdp+tcx"},
		{"VXLAN only", only(model.VXLAN), model.DefaultEncapsulations, "tcx"},
	} {
		s := f.State(workloads)
		s.Nodes[0].Encapsulations, s.Nodes[1].Encapsulations = c.here, c.far
		must.Get(a.client.PutState(context.Background(), s))(t)
		status := must.Get(a.client.Status(context.Background()))(t)
		if len(status.Fabric) != 1 || status.Fabric[0].Mode != c.mode {
			t.Errorf("%s: the fabric is served as %+v, want %s", c.what, status.Fabric, c.mode)
		}
		l := must.Get(f.A.Link(netdev.GRODevice))(t)
		if l == nil { // VXLAN is accepted for 30 s after a change
			t.Errorf("%s: there is no device %s", c.what, netdev.GRODevice)
		}
	}
}

// Another overlay's VXLAN devices on the nodes, on the same UDP port, work while no pair of nodes
// uses VXLAN. Else the node reports the other device.
func TestAnotherOverlaysVXLANPassesUnlessVXLANIsUsed(t *testing.T) {
	t.Parallel()
	f := agenttest.NewFleet(t)
	workloads := map[string]*netdev.Space{"a1": agenttest.NewSpace(t, "a1"), "b1": agenttest.NewSpace(t, "b1")}
	nodes := map[string]*running{"a": start(t, f.Config("a")), "b": start(t, f.Config("b"))}
	offer := func(e ...model.Encapsulation) {
		for _, n := range nodes {
			must.Get(n.client.PutState(context.Background(), f.State(workloads, e...)))(t)
		}
	}
	offer(model.MPLSoUDP)
	for s, at := range map[*netdev.Space][2]string{f.A: {"172.31.0.2", "172.31.9.1/24"}, f.B: {"172.31.0.1", "172.31.9.2/24"}} {
		must.Succeed(t, s.Links.LinkAdd(&netlink.Vxlan{LinkAttrs: netlink.LinkAttrs{Name: "other0"}, VxlanId: 99, Port: model.DefaultVXLANPort, Group: net.ParseIP(at[0])}))
		must.Succeed(t, s.Links.LinkSetUp(agenttest.LinkIn(t, s, "other0")))
		agenttest.Addressed(t, s, "other0", at[1])
	}
	must.Succeed(t, exchange(f.A, f.B, "172.31.9.2"))
	must.Succeed(t, nodes["a"].healthy())
	if l, err := f.A.Link(netdev.GRODevice); l != nil || err != nil {
		t.Errorf("without VXLAN there is the device %v, %v", l, err)
	}
	offer(model.MPLSoUDP, model.VXLAN)
	must.Succeed(t, nodes["a"].complains("VXLAN device other0", "vxlan_port", "4789"))
	if s, err := nodes["a"].client.Status(context.Background()); err != nil || !s.InSync {
		t.Errorf("the node forwards, but its status is %+v, %v", s, err)
	}
}

// Packets of other programs to MPLSoUDP's port, and MPLS in GRE, pass between the nodes unless a pair of
// nodes uses these encapsulations.
func TestAnotherProgramsMPLSPassesUnlessItIsUsed(t *testing.T) {
	t.Parallel()
	f := agenttest.NewFleet(t)
	nodes := map[string]*running{"a": start(t, f.Config("a")), "b": start(t, f.Config("b"))}
	open := func(s *netdev.Space, network, address string) (c net.PacketConn) {
		t.Helper()
		must.Succeed(t, s.Do(func() (err error) {
			c, err = net.ListenPacket(network, address)
			return err
		}))
		t.Cleanup(func() { c.Close() })
		return c
	}
	type ends struct {
		from, to net.PacketConn
		far      net.Addr
	}
	far := net.ParseIP("172.31.0.2")
	udp := ends{open(f.A, "udp", "172.31.0.1:0"), open(f.B, "udp", "172.31.0.2:6635"), &net.UDPAddr{IP: far, Port: 6635}}
	gre := ends{open(f.A, "ip4:gre", "172.31.0.1"), open(f.B, "ip4:gre", "172.31.0.2"), &net.IPAddr{IP: far}}
	limit := map[bool]time.Duration{true: time.Minute, false: time.Second}
	passes := func(e ends, want bool) bool {
		text := append([]byte{0, 0, 0x88, 0x47}, make([]byte, 40)...)
		e.from.WriteTo(text, e.far) // fails if the guard drops the packet
		e.to.SetReadDeadline(time.Now().Add(limit[want]))
		_, _, err := e.to.ReadFrom(make([]byte, 100))
		return err == nil
	}
	for _, c := range []struct {
		offers   []model.Encapsulation
		udp, gre bool
	}{
		{[]model.Encapsulation{model.VXLAN}, true, true},
		{[]model.Encapsulation{model.VXLAN, model.MPLSoUDP}, false, true},
		{[]model.Encapsulation{model.VXLAN, model.MPLSoUDP, model.MPLSoGRE}, false, false},
	} {
		for _, n := range nodes {
			must.Get(n.client.PutState(context.Background(), f.State(nil, c.offers...)))(t)
		}
		if u, g := passes(udp, c.udp), passes(gre, c.gre); u != c.udp || g != c.gre {
			t.Errorf("the nodes offer %v: packets to port 6635 pass: %v, want %v; MPLS in GRE: %v, want %v", c.offers, u, c.udp, g, c.gre)
		}
	}
}

// A gateway has one encapsulation in both directions, so it decides about XDP too.
func TestAGatewayWithMPLSNeedsXDP(t *testing.T) {
	f := agenttest.NewFleet(t)
	a := start(t, f.Config("a"))
	s := f.State(map[string]*netdev.Space{"a1": agenttest.NewSpace(t, "a1")}, model.DefaultEncapsulations...)
	for _, c := range []struct {
		encapsulation model.Encapsulation
		mode          string
	}{{model.VXLAN, "tcx"}, {model.MPLSoGRE, "xdp+tcx"}, {model.VXLAN, "tcx"}} {
		s.Gateways = []model.Gateway{{
			Name: "mx", Addresses: []netip.Addr{netip.MustParseAddr("172.31.0.9")}, Encapsulation: c.encapsulation,
			Networks: []model.GatewayNetwork{{Network: "red", Label: 100, VNI: 100, Prefixes: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}}},
		}}
		must.Get(a.client.PutState(context.Background(), s))(t)
		status := must.Get(a.client.Status(context.Background()))(t)
		if len(status.Fabric) != 1 || status.Fabric[0].Mode != c.mode {
			t.Errorf("with a gateway of %s the fabric is served as %+v, want %s", c.encapsulation, status.Fabric, c.mode)
		}
	}
}

func TestAForeignDeviceOfThatNameStays(t *testing.T) {
	f := agenttest.NewFleet(t)
	must.Succeed(t, f.A.Links.LinkAdd(&netlink.Vxlan{LinkAttrs: netlink.LinkAttrs{Name: netdev.GRODevice}, FlowBased: true, Port: 9999}))
	a := start(t, f.Config("a"))
	s := f.State(nil, model.VXLAN)
	must.Get(a.client.PutState(context.Background(), s))(t)
	status := must.Get(a.client.Status(context.Background()))(t)
	if len(status.Fabric) != 1 || !strings.HasPrefix(status.Fabric[0].Mode, "xdp") {
		t.Errorf("the fabric is served as %+v, want XDP", status.Fabric)
	}
	must.Succeed(t, netdev.RemoveMerging(f.A, "a"))
	if l, err := f.A.Link(netdev.GRODevice); err != nil || l == nil {
		t.Errorf("the device is gone: %v", err)
	}
}
