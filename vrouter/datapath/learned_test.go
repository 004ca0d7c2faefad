package datapath

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"windtunnel/internal/must"
	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
)

// tooBig returns the ICMP error of an underlay router about a tunnel packet: an MTU,
// and as much of the packet as each kind of error must quote.
func tooBig(t *testing.T, v6 bool, mtu uint16, outer []byte) []byte {
	t.Helper()
	eth := &layers.Ethernet{SrcMAC: hw(macB), DstMAC: hw(macA), EthernetType: layers.EthernetTypeIPv4}
	if v6 {
		eth.EthernetType = layers.EthernetTypeIPv6
		ip := &layers.IPv6{Version: 6, HopLimit: 64, NextHeader: layers.IPProtocolICMPv6, SrcIP: netip.MustParseAddr("fd31::fe").AsSlice(), DstIP: local6.AsSlice()}
		icmp := &layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(layers.ICMPv6TypePacketTooBig, 0)}
		icmp.SetNetworkLayerForChecksum(ip)
		return serialize(t, eth, ip, icmp, gopacket.Payload(append(binary.BigEndian.AppendUint32(nil, uint32(mtu)), outer[14:]...)))
	}
	return serialize(t, eth, &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolICMPv4, SrcIP: []byte{172, 31, 0, 254}, DstIP: local.AsSlice()},
		&layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(3, 4), Seq: mtu}, gopacket.Payload(outer[14:14+28]))
}

// sentLarge returns a tunnel packet of 1,300 bytes or more that the rig has sent.
func (r *rig) sentLarge(t *testing.T, from, to netip.Addr) []byte {
	t.Helper()
	code, outer := r.run(t, r.programs.FromWorkload, r.vif, frame(macA, model.RouterMAC, packet(t, from, to, 0, 9, string(make([]byte, 1300)))))
	if code != actRedirect {
		t.Fatalf("action %d", code)
	}
	return outer
}

// sentSmall returns a tunnel packet that fits every learned MTU.
func (r *rig) sentSmall(t *testing.T) []byte {
	t.Helper()
	code, outer := r.run(t, r.programs.FromWorkload, r.vif, frame(macA, model.RouterMAC, packet(t, addrA, addrB, 0, 9, "hello")))
	if code != actRedirect {
		t.Fatalf("action %d", code)
	}
	return outer
}

func TestLearnedMTUsAreUsedAndKept(t *testing.T) {
	everyTunnel(t, func(t *testing.T, encap model.Encapsulation, v6 bool) {
		r := newRig(t, encap, v6, nil)
		if code, _ := r.run(t, r.programs.FabricTc, r.fabric, tooBig(t, v6, 1290, r.sentLarge(t, addrA, addrB))); code != actUnspec {
			t.Errorf("the host's stack must get the error too: action %d", int32(code))
		}
		got, err := r.LearnedMTUs()
		if err != nil || got[nhTunnel] != 1290 || got[nhTunnelEthernet] != 1290 || len(got) != 2 {
			t.Fatalf("learned %v, %v", got, err)
		}
		overhead := map[model.Encapsulation]int{model.MPLSoGRE: 28, model.MPLSoUDP: 32, model.VXLAN: 50}[encap]
		if v6 {
			overhead += 20
		}
		routed, bridged := 1290-overhead, 1290-overhead
		if encap != model.VXLAN {
			bridged -= 14
		}
		send := func(to model.MAC, size int) string {
			before, _ := r.Drops()
			r.run(t, r.programs.FromWorkload, r.vif, frame(macA, to, packet(t, addrA, addrB, 0, 9, string(make([]byte, size-28)))))
			return r.drop(t, before)
		}
		for size, want := range map[int]string{0: "none", 1: "too_big"} {
			if got := send(model.RouterMAC, routed+size); got != want {
				t.Errorf("a routed packet of %d: dropped as %s, want %s", routed+size, got, want)
			}
			if got := send(macB, bridged+size); got != want {
				t.Errorf("a bridged packet of %d: dropped as %s, want %s", bridged+size, got, want)
			}
		}
		must.Get(r.Apply(r.tables))(t)
		if got, _ := r.LearnedMTUs(); got[nhTunnel] != 1290 {
			t.Errorf("after an Apply: %v", got)
		}
		small := r.sentSmall(t)
		r.run(t, r.programs.FabricTc, r.fabric, tooBig(t, v6, 0, small))
		if got, _ := r.LearnedMTUs(); got[nhTunnel] != 576 {
			t.Errorf("after an error without an MTU: %v, want 576", got)
		}
	})
}

// TestAForgedErrorDoesNotLowerTheMTU sends errors that quote packets which this node
// did not send. The first makes the node ignore errors about the tunnel for a second.
func TestAForgedErrorDoesNotLowerTheMTU(t *testing.T) {
	everyTunnel(t, func(t *testing.T, encap model.Encapsulation, v6 bool) {
		for what, change := range map[string]func(outer []byte){
			"another identification or flow label": func(outer []byte) {
				if v6 {
					outer[14+3] ^= 1
				} else {
					outer[14+4] ^= 1
				}
			},
			"a packet that fits": func(outer []byte) {
				if v6 {
					binary.BigEndian.PutUint16(outer[14+4:], 1200-40)
				} else {
					binary.BigEndian.PutUint16(outer[14+2:], 1200)
				}
			},
		} {
			r := newRig(t, encap, v6, nil)
			outer := r.sentLarge(t, addrA, addrB)
			forged := append([]byte{}, outer...)
			change(forged)
			r.run(t, r.programs.FabricTc, r.fabric, tooBig(t, v6, 1280, forged))
			if got, err := r.LearnedMTUs(); err != nil || len(got) != 0 {
				t.Errorf("%s: learned %v, %v", what, got, err)
			}
			r.run(t, r.programs.FabricTc, r.fabric, tooBig(t, v6, 1280, outer))
			if got, err := r.LearnedMTUs(); err != nil || len(got) != 0 {
				t.Errorf("%s: learned %v, %v within a second", what, got, err)
			}
			var l layout.LearnedMTU
			if err := r.maps.LearnedMtus.Lookup(nhTunnel, &l); err != nil || l.IgnoreNs == 0 {
				t.Fatalf("%s: %+v, %v", what, l, err)
			}
			l.IgnoreNs = 1
			must.Succeed(t, r.maps.LearnedMtus.Put(nhTunnel, l))
			r.run(t, r.programs.FabricTc, r.fabric, tooBig(t, v6, 1280, outer))
			if got, err := r.LearnedMTUs(); err != nil || got[nhTunnel] != 1280 {
				t.Errorf("%s: learned %v, %v from the true error later", what, got, err)
			}
		}
	})
}

// TestALearnedMTULeavesWhatIPNeeds: IPv4 hosts must accept packets of 576 bytes, and
// IPv6 hosts do not send smaller packets than 1,280 bytes.
func TestALearnedMTULeavesWhatIPNeeds(t *testing.T) {
	r := newRig(t, model.MPLSoUDP, false, nil)
	r.run(t, r.programs.FabricTc, r.fabric, tooBig(t, false, 68, r.sentLarge(t, addrA, addrB)))
	if got, err := r.LearnedMTUs(); err != nil || got[nhTunnel] != 576 {
		t.Fatalf("learned %v, %v", got, err)
	}
	for _, c := range []struct {
		from, to netip.Addr
		size     int
		want     string
	}{
		{addrA, addrB, 576 - 28, "none"}, {addrA, addrB, 577 - 28, "too_big"},
		{addrA6, addrB6, 1280 - 48, "none"}, {addrA6, addrB6, 1281 - 48, "too_big"},
	} {
		before, _ := r.Drops()
		r.run(t, r.programs.FromWorkload, r.vif, frame(macA, model.RouterMAC, packet(t, c.from, c.to, 0, 9, string(make([]byte, c.size)))))
		if got := r.drop(t, before); got != c.want {
			t.Errorf("%d bytes of UDP payload to %s: dropped as %s, want %s", c.size, c.to, got, c.want)
		}
	}
}
