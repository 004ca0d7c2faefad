package agent

import (
	"context"
	"strings"
	"testing"

	"windtunnel/vrouter/model"
)

// On a node with VXLAN only, the kernel merges VXLAN packets and XDP is off. A node
// with other encapsulations uses XDP.
func TestOnlyANodeOfVXLANAloneMergesIt(t *testing.T) {
	f := newFleet(t)
	a := start(t, f.config("a"))
	for _, c := range []struct {
		offers []model.Encapsulation
		mode   string
	}{
		{[]model.Encapsulation{model.VXLAN}, "tcx"},
		{[]model.Encapsulation{model.VXLAN, model.MPLSoUDP}, "xdp+tcx"},
		{[]model.Encapsulation{model.VXLAN}, "tcx"},
	} {
		s := f.state(nil)
		for i := range s.Nodes {
			s.Nodes[i].Encapsulations = c.offers
		}
		_, err := a.client.PutState(context.Background(), s)
		must(t, err)
		status, err := a.client.Status(context.Background())
		must(t, err)
		if len(status.Fabric) != 1 || status.Fabric[0].Mode != c.mode {
			t.Errorf("offering %v the fabric is served as %+v, want %s", c.offers, status.Fabric, c.mode)
		}
		l, err := f.a.link(groDevice)
		must(t, err)
		if (l != nil) != (c.mode == "tcx") {
			t.Errorf("offering %v: device %v", c.offers, l)
		}
	}
}

func TestADeviceOfThatNameThatIsSomebodyElsesStays(t *testing.T) {
	f := newFleet(t)
	must(t, f.a.do(func() error { return addMerging(9999) }))
	a := start(t, f.config("a"))
	s := f.state(nil)
	for i := range s.Nodes {
		s.Nodes[i].Encapsulations = []model.Encapsulation{model.VXLAN}
	}
	_, err := a.client.PutState(context.Background(), s)
	must(t, err)
	status, err := a.client.Status(context.Background())
	must(t, err)
	if len(status.Fabric) != 1 || !strings.HasPrefix(status.Fabric[0].Mode, "xdp") {
		t.Errorf("the fabric is served as %+v, want XDP", status.Fabric)
	}
	must(t, removeMerging(f.a, "a"))
	if l, err := f.a.link(groDevice); err != nil || l == nil {
		t.Errorf("the device is gone: %v", err)
	}
}
