package e2e

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"windtunnel/vrouter/direct"
	"windtunnel/vrouter/inspect"
	"windtunnel/vrouter/model"
)

// A process on a node must not send direct frames, nor may a station on the link that is
// no node, nor a node for a network of others.
func TestForgedLabelsAreNotDelivered(t *testing.T) {
	b := newBed(t, options{nodes: 3})
	b.state.Networks = []model.Network{{Name: "blue", ID: 5, VNI: 1005, Tenant: "blue", Subnets: subnets("10.1.0.0/16")}}
	blue := b.state.Networks[0]
	b.state.Nodes = b.nodesOf(false, model.Direct, model.VXLAN)
	b.state.Networks = append(b.state.Networks, model.Network{Name: "red", ID: 6, VNI: 1006, Tenant: "red", Subnets: subnets("10.1.0.0/16")})
	x, y := b.workload("x", "blue", 0, "10.1.0.10"), b.workload("y", "blue", 1, "10.1.0.11")
	b.workload("z", "red", 2, "10.1.0.12")
	b.up()
	b.nodes[0].awaitWay("b", model.Direct)
	heard := x.hearing(t, 7777)
	frame := func(to, from model.MAC, source netip.Addr) []byte {
		return udpFrame(t, from, to, source, x.ip(4), 7777, []byte("forged"))
	}
	here := direct.Label(blue.ID, b.nodes[0].v4)
	guarded := frame(here, direct.Label(blue.ID, b.nodes[1].v4), y.ip(4))
	in(b.nodes[1].ns, func() error { return rawFrames{frames: [][]byte{guarded}}.send("fab") }) // may fail: the guard drops it
	if heard() {
		t.Error("a process on a node sent a direct frame")
	}
	if n := b.nodes[1].drops()["forged_tunnel"]; n != 1 {
		t.Errorf("%d drops under forged_tunnel", n)
	}
	// What follows enters the link behind the guards, as a station on the link does.
	for _, c := range []struct {
		name     string
		from     model.MAC
		source   netip.Addr
		to       model.MAC
		reason   string
		delivers bool
	}{
		{"a station that is no node", direct.Label(blue.ID, netip.MustParseAddr("172.30.0.77")), y.ip(4), here, "unknown_source", false},
		{"a station without a label", model.MAC{2, 1, 1, 1, 1, 1}, y.ip(4), here, "unknown_source", false},
		{"a node with another network's label", direct.Label(6, b.nodes[1].v4), y.ip(4), here, "unknown_source", false},
		{"a node without that workload", direct.Label(blue.ID, b.nodes[2].v4), y.ip(4), here, "forged_source", false},
		{"a network that is not here", direct.Label(6, b.nodes[1].v4), y.ip(4), direct.Label(6, b.nodes[0].v4), "unknown_label", false},
		{"the node itself", direct.Label(blue.ID, b.nodes[1].v4), y.ip(4), here, "", true},
	} {
		before := b.nodes[0].drops()
		b.sendOnSwitch("port0", frame(c.to, c.from, c.source))
		if got := heard(); got != c.delivers {
			t.Errorf("%s: delivered %v", c.name, got)
		}
		if c.reason != "" && b.nodes[0].drops()[c.reason] != before[c.reason]+1 {
			t.Errorf("%s: drops before %v, after %v, want one more under %s", c.name, before, b.nodes[0].drops(), c.reason)
		}
	}
}

// The workload's packet may have an address of the underlay in it, and a tunnel's port.
// The receiving node must not take it for a tunnel packet.
func TestADirectPacketToAnAddressOfTheUnderlayIsTheTenants(t *testing.T) {
	b := newBed(t, options{})
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
	b.nodes[0].awaitWay("b", model.Direct)
	heard := victim.hearing(t, 7777)
	inner := udpFrame(t, model.RouterMAC, model.RouterMAC, netip.MustParseAddr("10.1.0.11"), victim.ip(4), 7777, []byte("forged"))[14:]
	entry := binary.BigEndian.AppendUint32(nil, (16+2*2)<<12|1<<8|64)
	x.sendFrame(udpFrame(t, x.port.MAC, model.RouterMAC, x.ip(4), b.nodes[1].v4, 6635, append(entry, inner...)))
	if heard() {
		t.Error("a tenant's packet was taken for a tunnel packet")
	}
	if n := one[inspect.Vif](b.nodes[1], "vif", "get", "y").TxPackets; n == 0 {
		t.Error("the packet did not reach the workload")
	}
}
