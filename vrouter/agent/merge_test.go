package agent

import (
	"context"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"windtunnel/vrouter/agent/agenttest"
	"windtunnel/vrouter/agent/netdev"
	"windtunnel/vrouter/model"
)

// On a node with VXLAN only, the kernel merges VXLAN packets and XDP is off. A node
// with other encapsulations uses XDP.
func TestOnlyANodeOfVXLANAloneMergesIt(t *testing.T) {
	f := agenttest.NewFleet(t)
	a := start(t, f.Config("a"))
	for _, c := range []struct {
		offers []model.Encapsulation
		mode   string
	}{
		{[]model.Encapsulation{model.VXLAN}, "tcx"},
		{[]model.Encapsulation{model.VXLAN, model.MPLSoUDP}, "xdp+tcx"},
		{[]model.Encapsulation{model.VXLAN}, "tcx"},
	} {
		s := f.State(nil, c.offers...)
		_, err := a.client.PutState(context.Background(), s)
		agenttest.Must(t, err)
		status, err := a.client.Status(context.Background())
		agenttest.Must(t, err)
		if len(status.Fabric) != 1 || status.Fabric[0].Mode != c.mode {
			t.Errorf("offering %v the fabric is served as %+v, want %s", c.offers, status.Fabric, c.mode)
		}
		l, err := f.A.Link(netdev.GRODevice)
		agenttest.Must(t, err)
		if (l != nil) != (c.mode == "tcx") {
			t.Errorf("offering %v: device %v", c.offers, l)
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
