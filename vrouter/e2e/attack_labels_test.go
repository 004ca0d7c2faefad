package e2e

import (
	"net"
	"net/netip"
	"testing"

	"windtunnel/vrouter/direct"
	"windtunnel/vrouter/model"
)

// labelBed starts two nodes that send without tunnels. The network blue has the workload v
// on the first node and w on the second node. There is one more network for each forwarding
// mode. It has an attacker on the second node and a peer of the attacker on the first node.
func labelBed(t *testing.T) (b *bed, v, w *workload, attackers map[model.Forwarding]*workload) {
	t.Helper()
	b = sharedBed(t, options{})
	b.state.Nodes = b.nodesOf(false, model.Direct, model.VXLAN)
	b.state.Networks = []model.Network{{Name: "blue", ID: 5, VNI: 1005, Tenant: "blue", Subnets: subnets("10.1.0.0/16")}}
	v, w = b.workload("v", "blue", 0, "10.1.0.10"), b.workload("w", "blue", 1, "10.1.0.11")
	attackers = map[model.Forwarding]*workload{}
	for i, kind := range []model.Forwarding{model.L3, model.L2, model.L2L3} {
		id := uint32(6 + i)
		b.state.Networks = append(b.state.Networks, model.Network{
			Name: string(kind), ID: id, VNI: 1000 + id, Tenant: string(kind), Forwarding: kind, Subnets: subnets("10.1.0.0/16"),
		})
		b.workload("peer-"+string(kind), string(kind), 0, "10.1.0.10")
		attackers[kind] = b.workload("evil-"+string(kind), string(kind), 1, "10.1.0.11")
	}
	b.up()
	b.nodes[1].awaitWays("a", directWays(model.L2L3)...)
	return b, v, w, attackers
}

// A workload may send any frame. Frames to labels must not reach another network.
func TestAWorkloadDoesNotSendToLabels(t *testing.T) {
	t.Parallel()
	b, v, w, attackers := labelBed(t)
	heard := v.hearing(t, 7777)
	to, from := direct.Label(5, b.nodes[0].v4), direct.Label(5, b.nodes[1].v4)
	forged := udpFrame(t, from, to, w.ip(4), v.ip(4), 7777, []byte("forged"))
	b.sendOnSwitch("port0", forged)
	if !heard(true) {
		t.Fatal("the forged frame is not delivered even if node b sends it, so this test would not detect the attack")
	}
	for kind, evil := range attackers {
		own := udpFrame(t, evil.port.MAC, to, evil.ip(4), v.ip(4), 7777, []byte("forged"))
		for name, frame := range map[string][]byte{
			"with its node's label as source":       forged,
			"with its MAC and IP address as source": own,
			"with a priority tag":                   tagged(forged, 0),
			"with a VLAN tag":                       tagged(forged, 5),
			"to the label of the attacker's node":   udpFrame(t, to, from, w.ip(4), v.ip(4), 7777, []byte("forged")),
		} {
			evil.sendFrame(frame)
			if heard(false) {
				t.Errorf("a workload of a network with forwarding mode %s sent a frame %s, and the frame was delivered", kind, name)
			}
		}
	}
}

// A station on the link can make a node believe that a label is the MAC address of a host.
// An unprivileged process then sends frames to the label. The node must drop them.
func TestAProcessDoesNotSendToALabelThatANeighbourClaims(t *testing.T) {
	t.Parallel()
	b, v, w, _ := labelBed(t)
	heard := v.hearing(t, 7777)
	claimed := netip.MustParseAddr("172.30.0.77")
	label := direct.Label(5, b.nodes[0].v4)
	b.nodes[1].ip("neigh replace " + claimed.String() + " lladdr " + label.String() + " dev fab")
	before := b.nodes[1].drops()["forged_tunnel"]
	b.must(in(b.nodes[1].ns, func() error {
		c, err := net.Dial("udp", netip.AddrPortFrom(claimed, 7777).String())
		if err != nil {
			return err
		}
		defer c.Close()
		_, err = c.Write([]byte("forged"))
		return err
	}))
	if n := b.nodes[1].drops()["forged_tunnel"]; n != before+1 {
		t.Errorf("node b counts %d drops with reason forged_tunnel, want %d", n, before+1)
	}
	// These frames enter at the switch, from a station that is not in the fleet.
	station := model.MAC{2, 1, 1, 1, 1, 1}
	frame := udpFrame(t, direct.Label(5, b.nodes[1].v4), label, w.ip(4), v.ip(4), 7777, []byte("forged"))
	b.sendOnSwitch("port0", frame)
	if !heard(true) {
		t.Fatal("a frame with the labels of both nodes is not delivered, so this test would not detect a delivered frame")
	}
	broken := append([]byte{}, frame...)
	broken[12], broken[13] = 0x86, 0xdd
	arp := append([]byte{}, frame...)
	arp[12], arp[13] = 0x08, 0x06
	for name, f := range map[string][]byte{
		"from a station without a label":         udpFrame(t, station, label, w.ip(4), v.ip(4), 7777, []byte("forged")),
		"with a VLAN tag":                        tagged(frame, 5),
		"with IPv4 and the EtherType of IPv6":    broken,
		"with the EtherType of ARP":              arp,
		"with a source address that no port has": udpFrame(t, direct.Label(5, b.nodes[1].v4), label, netip.MustParseAddr("10.1.0.99"), v.ip(4), 7777, []byte("forged")),
		"to the label of network 0":              udpFrame(t, direct.Label(0, b.nodes[1].v4), direct.Label(0, b.nodes[0].v4), w.ip(4), v.ip(4), 7777, []byte("forged")),
	} {
		b.sendOnSwitch("port0", f)
		if heard(false) {
			t.Errorf("a frame %s was delivered", name)
		}
	}
}
