package agent

import (
	"context"
	"net/netip"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"windtunnel/vrouter/agent/agenttest"
	"windtunnel/vrouter/agent/netdev"
	"windtunnel/vrouter/model"
)

// The kernel merges VXLAN packets on each node that offers VXLAN. XDP is attached only if a
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
		device    bool
	}{
		{"the default on both nodes", model.DefaultEncapsulations, model.DefaultEncapsulations, "tcx", true},
		{"the other node offers MPLS only", model.DefaultEncapsulations, only(model.MPLSoUDP), "xdp+tcx", true},
		{"VXLAN before MPLS", only(model.VXLAN, model.MPLSoGRE), only(model.VXLAN, model.MPLSoGRE), "tcx", true},
		{"MPLS before VXLAN", only(model.MPLSoGRE, model.VXLAN), only(model.MPLSoGRE, model.VXLAN), "xdp+tcx", true},
		{"MPLS only", only(model.MPLSoUDP), only(model.MPLSoUDP), "xdp+tcx", false},
		{"VXLAN only", only(model.VXLAN), model.DefaultEncapsulations, "tcx", true},
	} {
		s := f.State(workloads)
		s.Nodes[0].Encapsulations, s.Nodes[1].Encapsulations = c.here, c.far
		_, err := a.client.PutState(context.Background(), s)
		agenttest.Must(t, err)
		status, err := a.client.Status(context.Background())
		agenttest.Must(t, err)
		if len(status.Fabric) != 1 || status.Fabric[0].Mode != c.mode {
			t.Errorf("%s: the fabric is served as %+v, want %s", c.what, status.Fabric, c.mode)
		}
		l, err := f.A.Link(netdev.GRODevice)
		agenttest.Must(t, err)
		if (l != nil) != c.device {
			t.Errorf("%s: device %s is %v, want one: %v", c.what, netdev.GRODevice, l, c.device)
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
		_, err := a.client.PutState(context.Background(), s)
		agenttest.Must(t, err)
		status, err := a.client.Status(context.Background())
		agenttest.Must(t, err)
		if len(status.Fabric) != 1 || status.Fabric[0].Mode != c.mode {
			t.Errorf("with a gateway of %s the fabric is served as %+v, want %s", c.encapsulation, status.Fabric, c.mode)
		}
	}
}

func TestADeviceOfThatNameThatIsSomebodyElsesStays(t *testing.T) {
	f := agenttest.NewFleet(t)
	agenttest.Must(t, f.A.Links.LinkAdd(&netlink.Vxlan{LinkAttrs: netlink.LinkAttrs{Name: netdev.GRODevice}, FlowBased: true, Port: 9999}))
	a := start(t, f.Config("a"))
	s := f.State(nil, model.VXLAN)
	_, err := a.client.PutState(context.Background(), s)
	agenttest.Must(t, err)
	status, err := a.client.Status(context.Background())
	agenttest.Must(t, err)
	if len(status.Fabric) != 1 || !strings.HasPrefix(status.Fabric[0].Mode, "xdp") {
		t.Errorf("the fabric is served as %+v, want XDP", status.Fabric)
	}
	agenttest.Must(t, netdev.RemoveMerging(f.A, "a"))
	if l, err := f.A.Link(netdev.GRODevice); err != nil || l == nil {
		t.Errorf("the device is gone: %v", err)
	}
}
