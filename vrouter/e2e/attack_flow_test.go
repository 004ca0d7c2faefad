package e2e

import (
	"testing"

	"windtunnel/vrouter/model"
)

// TestOneNetworksFlowsLeaveRoomForAnothers: a workload opens more flows than the table
// has entries. Workloads of another network must still open connections.
func TestOneNetworksFlowsLeaveRoomForAnothers(t *testing.T) {
	t.Parallel()
	const flows = 3000
	b := newBed(t, options{config: map[string]any{"limits": map[string]any{"flows": flows}}})
	b.state.Nodes = b.nodesOf(false, model.MPLSoUDP)
	b.state.Policies = []model.Policy{open}
	for i, name := range []string{"red", "blue"} {
		b.state.Networks = append(b.state.Networks, model.Network{Name: name, ID: uint32(i + 1), Tenant: name, Policies: []string{"open"}, Subnets: subnets("10.1.0.0/16")})
	}
	x, y := b.workload("x", "red", 0, "10.1.0.10"), b.workload("y", "red", 1, "10.1.0.11")
	u, v := b.workload("u", "blue", 0, "10.1.0.10"), b.workload("v", "blue", 1, "10.1.0.11")
	b.up()
	var frames [][]byte
	for port := range uint16(flows + 1000) {
		frames = append(frames, withSourcePort(udpFrame(t, x.port.MAC, model.RouterMAC, x.ip(4), y.ip(4), 7777, []byte("hello")), 34, 10000+port))
	}
	x.sendFrame(frames...)
	if drops := b.nodes[0].drops(); drops["flow_quota"] == 0 || drops["flow_table_full"] != 0 {
		t.Errorf("drops %v, want some under flow_quota and none under flow_table_full", drops)
	}
	for range 20 {
		if err := transfer(u, v, 4, 1<<10); err != nil {
			t.Fatal(err)
		}
	}
}
