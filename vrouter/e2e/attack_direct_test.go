package e2e

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"windtunnel/vrouter/direct"
	"windtunnel/vrouter/model"
)

// A node must drop a direct frame that a process on another node sends, that a station
// outside the fleet sends, or that a node sends for a network without a port on that node.
func TestForgedLabelsAreNotDelivered(t *testing.T) {
	t.Parallel()
	b := sharedBed(t, options{nodes: 3})
	b.state.Networks = []model.Network{{Name: "blue", ID: 5, VNI: 1005, Tenant: "blue", Subnets: subnets("10.1.0.0/16")}}
	blue := b.state.Networks[0]
	b.state.Nodes = b.nodesOf(false, model.Direct, model.VXLAN)
	b.state.Networks = append(b.state.Networks, model.Network{Name: "red", ID: 6, VNI: 1006, Tenant: "red", Subnets: subnets("10.1.0.0/16")})
	x, y := b.workload("x", "blue", 0, "10.1.0.10"), b.workload("y", "blue", 1, "10.1.0.11")
	b.workload("z", "red", 2, "10.1.0.12")
	b.up()
	b.nodes[0].awaitWays("b", "direct")
	heard := x.hearing(t, 7777)
	frame := func(to, from model.MAC, source netip.Addr) []byte {
		return udpFrame(t, from, to, source, x.ip(4), 7777, []byte("forged"))
	}
	here := direct.Label(blue.ID, b.nodes[0].v4)
	guarded := frame(here, direct.Label(blue.ID, b.nodes[1].v4), y.ip(4))
	in(b.nodes[1].ns, func() error { return rawFrames{frames: [][]byte{guarded}}.send("fab") }) // fails if the guard drops the frame
	if heard(false) {
		t.Error("the workload received a direct frame from a process on a node")
	}
	if n := b.nodes[1].drops()["forged_tunnel"]; n != 1 {
		t.Errorf("the sending node counts %d drops with reason forged_tunnel, want 1", n)
	}
	bridged := direct.Label(blue.ID, b.nodes[1].v4)
	bridged[0] ^= 4
	// These frames enter at the switch, so no guard of a node sees them.
	for _, c := range []struct {
		name     string
		from     model.MAC
		source   netip.Addr
		to       model.MAC
		reason   string
		delivers bool
	}{
		{"a station outside the fleet", direct.Label(blue.ID, netip.MustParseAddr("172.30.0.77")), y.ip(4), here, "unknown_source", false},
		{"a station without a label", model.MAC{2, 1, 1, 1, 1, 1}, y.ip(4), here, "unknown_source", false},
		{"a node with the label of another network", direct.Label(6, b.nodes[1].v4), y.ip(4), here, "unknown_source", false},
		{"a node without that workload", direct.Label(blue.ID, b.nodes[2].v4), y.ip(4), here, "forged_source", false},
		{"a network without a port on this node", direct.Label(6, b.nodes[1].v4), y.ip(4), direct.Label(6, b.nodes[0].v4), "unknown_label", false},
		{"the node of the workload, as a bridged frame", bridged, y.ip(4), here, "unknown_label", false},
		{"the node of the workload", direct.Label(blue.ID, b.nodes[1].v4), y.ip(4), here, "", true},
	} {
		before := b.nodes[0].drops()
		b.sendOnSwitch("port0", frame(c.to, c.from, c.source))
		if got := heard(c.delivers); got != c.delivers {
			t.Errorf("a frame from %s: delivered %v, want %v", c.name, got, c.delivers)
		}
		if c.reason != "" && b.nodes[0].drops()[c.reason] != before[c.reason]+1 {
			t.Errorf("a frame from %s: the drops were %v and are %v, want one more with reason %s", c.name, before, b.nodes[0].drops(), c.reason)
		}
	}
}

// A workload can send a packet to an underlay address and to the UDP port of a tunnel. The
// receiving node must not decapsulate this packet.
func TestADirectPacketToAnUnderlayAddressIsNotDecapsulated(t *testing.T) {
	t.Parallel()
	b := sharedBed(t, options{})
	b.state.Nodes = b.nodesOf(false, model.Direct, model.MPLSoUDP)
	b.state.Networks = []model.Network{
		{Name: "red", ID: 1, VNI: 1001, Tenant: "red", Subnets: subnets("10.2.0.0/16")},
		{Name: "blue", ID: 2, VNI: 1002, Tenant: "blue", Subnets: subnets("10.1.0.0/16")},
	}
	x := b.workload("x", "red", 0, "10.2.0.9")
	b.workload("y", "red", 1, "10.2.0.10")
	b.state.Routes = []model.Route{{Network: "red", Prefix: netip.MustParsePrefix("172.30.0.0/24"), Via: []model.Via{{Port: "y"}}}}
	victim := b.workload("v", "blue", 1, "10.1.0.10")
	b.workload("w", "blue", 0, "10.1.0.11")
	b.up()
	b.nodes[0].awaitWays("b", "direct")
	heard := victim.hearing(t, 7777)
	inner := udpFrame(t, model.RouterMAC, model.RouterMAC, netip.MustParseAddr("10.1.0.11"), victim.ip(4), 7777, []byte("forged"))[14:]
	entry := binary.BigEndian.AppendUint32(nil, (16+2*2)<<12|1<<8|64)
	x.sendFrame(udpFrame(t, x.port.MAC, model.RouterMAC, x.ip(4), b.nodes[1].v4, 6635, append(entry, inner...)))
	if heard(false) {
		t.Error("the node decapsulated the packet of a workload")
	}
	if n := b.nodes[1].vif("y").TxPackets; n == 0 {
		t.Error("the packet did not reach workload y")
	}
}
