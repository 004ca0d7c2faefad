package datapath

import (
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
)

func TestFlowsOfTheOldProgramsAreKept(t *testing.T) {
	dir := pins(t)
	devices := enterSpace(t, 3)
	want := scene(devices[0], devices[1], devices[2], model.MPLSoUDP, false)
	first := open(t, Options{Pins: dir})
	must.Get(first.Apply(want))(t)
	for _, device := range devices[:2] {
		must.Succeed(t, first.AttachVif(device))
	}
	larger := small
	larger.Routes *= 2
	second := open(t, Options{Pins: dir, Limits: larger})
	// The old programs are still at work, and take a flow in.
	key := layout.FlowKey{Vif: 1, Protocol: 6, LocalPort: 80}
	must.Succeed(t, first.maps.Flows.Put(&key, &layout.Flow{CreatedNs: 1, Packets: [2]uint64{3, 4}}))
	old := must.Get(first.maps.Flows.Clone())(t)
	defer old.Close()
	first.Close()
	must.Get(second.Apply(want))(t)
	must.Succeed(t, second.AttachVif(devices[0]))
	must.Get(second.Apply(want))(t)
	var flow layout.Flow
	if err := second.maps.Flows.Lookup(&key, &flow); err != nil || flow.Packets != [2]uint64{3, 4} {
		t.Errorf("the flow is lost: %+v, %v", flow, err)
	}
	// Now one vif has the new programs, and the other one still has the old programs.
	late := layout.FlowKey{Vif: 2, Protocol: 6, LocalPort: 80}
	must.Succeed(t, old.Put(&late, &layout.Flow{CreatedNs: 2}))
	time.Sleep(time.Until(second.swapping.next))
	must.Succeed(t, second.AttachVif(devices[1]))
	if err := second.maps.Flows.Lookup(&late, &flow); err != nil {
		t.Errorf("the later flow is lost: %v", err)
	}
}
