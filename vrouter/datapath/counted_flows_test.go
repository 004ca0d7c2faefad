package datapath

import (
	"net/netip"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"windtunnel/internal/must"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
)

// opened is a change of the scene: the flows of vif 1 are only counted.
func opened(f *fib.Tables) {
	f.Policies[1] = fib.Policy{AllowIn: true, AllowOut: true}
	for device, v := range f.Vifs {
		v.Flags |= layout.If[uint16](v.ID == 1, layout.VifPolicy|layout.VifOpen)
		f.Vifs[device] = v
	}
}

// allFlows returns the flow table.
func (r *rig) allFlows(t *testing.T) map[FlowKey]Flow {
	t.Helper()
	all := map[FlowKey]Flow{}
	must.Succeed(t, r.Flows(func(k FlowKey, f Flow) bool { all[k] = f; return true }))
	return all
}

// The third flow exceeds the quota of the port, and the fragment has no first one.
func TestAnOpenVifCountsItsFlowsAndDropsNoPacket(t *testing.T) {
	limits := small
	limits.Flows = 6
	dir, devices := pins(t), enterSpace(t, 3)
	r := &rig{Datapath: open(t, Options{Pins: dir, Limits: limits}), vif: devices[0], vif2: devices[1], fabric: devices[2]}
	f := scene(r.vif, r.vif2, r.fabric, model.MPLSoUDP, false)
	opened(&f)
	must.Get(r.Apply(f))(t)
	for i := range uint16(5) {
		ip := ip4(addrA, addrB, 64)
		ip.Protocol = layers.IPProtocolUDP
		udp := &layers.UDP{SrcPort: layers.UDPPort(1000 + i), DstPort: 53}
		udp.SetNetworkLayerForChecksum(&ip)
		if code, _ := r.run(t, r.programs.FromWorkload, r.vif, frame(macA, model.RouterMAC, serialize(t, &ip, udp, gopacket.Payload("x")))); code != actRedirect {
			t.Errorf("flow %d: action %d, drop reason %s, want a redirect", i, code, r.drop(t, nil))
		}
	}
	if n := len(r.allFlows(t)); n == 0 || n == 5 {
		t.Errorf("%d flows are counted, want some and not all", n)
	}
	later := ip4(addrA, addrB, 64)
	later.FragOffset, later.Protocol, later.Flags = 100, layers.IPProtocolUDP, 0
	if code, _ := r.run(t, r.programs.FromWorkload, r.vif, frame(macA, model.RouterMAC, serialize(t, &later, gopacket.Payload(make([]byte, 64))))); code != actRedirect {
		t.Errorf("a later fragment: action %d, drop reason %s, want a redirect", code, r.drop(t, nil))
	}
}

// BPF_PROG_TEST_RUN cannot send a superpacket into a tunnel, so it is dropped after it was counted.
func TestAFlowCountsASuperpacketAsItsSegments(t *testing.T) {
	tcp := &layers.TCP{SrcPort: 1000, DstPort: 80, ACK: true, DataOffset: 8, Options: []layers.TCPOption{
		{OptionType: layers.TCPOptionKindNop}, {OptionType: layers.TCPOptionKindNop}, {OptionType: layers.TCPOptionKindTimestamps, OptionLength: 10, OptionData: make([]byte, 8)},
	}}
	udp := &layers.UDP{SrcPort: 1000, DstPort: 80}
	v4 := func(p layers.IPProtocol) *layers.IPv4 { ip := ip4(addrA, addrB, 64); ip.Protocol = p; return &ip }
	v6 := func(p layers.IPProtocol) *layers.IPv6 {
		return &layers.IPv6{Version: 6, HopLimit: 64, NextHeader: p, SrcIP: addrA6.AsSlice(), DstIP: addrB6.AsSlice()}
	}
	type network interface {
		gopacket.NetworkLayer
		gopacket.SerializableLayer
	}
	for name, c := range map[string]struct {
		ip       network
		l4       gopacket.SerializableLayer
		headers  uint64 // with Ethernet's
		segments uint32 // that the packet's buffer has
	}{
		"TCP":                              {v4(layers.IPProtocolTCP), tcp, 14 + 20 + 32, 3},
		"TCP over IPv6":                    {v6(layers.IPProtocolTCP), tcp, 14 + 40 + 32, 3},
		"TCP of a virtual machine":         {v4(layers.IPProtocolTCP), tcp, 14 + 20 + 32, 0},
		"UDP":                              {v4(layers.IPProtocolUDP), udp, 14 + 20 + 8, 3},
		"UDP over IPv6, virtual machine's": {v6(layers.IPProtocolUDP), udp, 14 + 40 + 8, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, model.MPLSoUDP, false, opened)
			c.l4.(interface {
				SetNetworkLayerForChecksum(gopacket.NetworkLayer) error
			}).SetNetworkLayerForChecksum(c.ip)
			b := frame(macA, model.RouterMAC, serialize(t, c.ip, c.l4, gopacket.Payload(make([]byte, 2500))))
			for round := uint64(1); round <= 2; round++ { // the second packet is of a known flow
				r.superpacket(t, b, c.segments, 1000)
				all := r.allFlows(t)
				if len(all) != 1 {
					t.Fatalf("flows: %v, want one", all)
				}
				for _, f := range all {
					if want := round * (2500 + 3*c.headers); f.Packets[0] != 3*round || f.Bytes[0] != want {
						t.Errorf("%d packets of %d bytes, want %d of %d", f.Packets[0], f.Bytes[0], 3*round, want)
					}
				}
			}
		})
	}
}

func TestAFlowHasTheTypeOfItsFirstICMPPacket(t *testing.T) {
	r := newRig(t, model.MPLSoUDP, false, opened)
	ip := ip4(addrA, addrB, 64)
	ip.Protocol = layers.IPProtocolICMPv4
	r.run(t, r.programs.FromWorkload, r.vif, frame(macA, model.RouterMAC, serialize(t, &ip, &layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(layers.ICMPv4TypeEchoRequest, 0), Id: 5}, gopacket.Payload("x"))))
	want := FlowKey{Vif: 1, Protocol: 1, Local: netip.AddrPortFrom(addrA, 5), Remote: netip.AddrPortFrom(addrB, 0)}
	if f, has := r.allFlows(t)[want]; !has || f.ICMP != layers.ICMPv4TypeEchoRequest {
		t.Errorf("flow %+v (%v), want the type of an echo request", f, has)
	}
}
