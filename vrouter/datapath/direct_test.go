package datapath

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"testing"

	"github.com/cilium/ebpf"

	"windtunnel/internal/must"
	"windtunnel/vrouter/direct"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
)

// goesDirectly changes the scene: packets to the node far go without a tunnel. The
// network's number, 0x321, has more than 8 bits.
func goesDirectly(f *fib.Tables) {
	t := f.Nexthops[nhTunnel]
	t.Encap, t.Flags, t.Port, t.MTU = layout.Number(model.Direct), 0, 0, 1500
	f.Nexthops[nhTunnel] = t
	for k, r := range f.Routes {
		if r.Nexthop == nhTunnel {
			r.Label = 0x321
			f.Routes[k] = r
		}
	}
}

func TestADirectPacketLeavesWithLabels(t *testing.T) {
	r := newRig(t, model.MPLSoUDP, false, goesDirectly)
	for _, to := range []netip.Addr{addrB, addrB6} {
		from := addrA
		if to.Is6() {
			from = addrA6
		}
		code, out := r.run(t, r.programs.FromWorkload, r.vif, frame(macA, model.RouterMAC, packet(t, from, to, 0xb9, 64, "hello")))
		if code != actRedirect {
			t.Fatalf("the packet to %s has action %d and drop reason %s, want a redirect", to, code, r.drop(t, nil))
		}
		want := frame(direct.Label(0x321, local), direct.Label(0x321, far), packet(t, from, to, 0xb9, 63, "hello"))
		if !bytes.Equal(out, want) {
			t.Errorf("the frame to %s is\n%x, want only labels as MAC addresses and a lower hop limit\n%x", to, out, want)
		}
	}
	stats := must.Get(r.VRFStats())(t)
	if n := stats[1].TxPackets[layout.Number(model.Direct)]; n != 2 {
		t.Errorf("the counter of encapsulation direct has %d packets, want 2", n)
	}
}

// A packet without a tunnel needs the mark of the programs, or fabric_out drops it.
func TestADirectPacketHasTheMark(t *testing.T) {
	r := newRig(t, model.MPLSoUDP, false, goesDirectly)
	_, mark := r.runMarked(t, r.programs.FromWorkload, r.vif, frame(macA, model.RouterMAC, packet(t, addrA, addrB, 0, 64, "hello")), 0)
	must.Equal(t, r.nonce[0], mark)
}

// fabric_out drops a frame to the label of another node if the frame lacks the mark of the
// programs. It passes the frames that test links.
func TestOnlyTheProgramsSendToLabels(t *testing.T) {
	r := newRig(t, model.MPLSoUDP, false, goesDirectly)
	ip := packet(t, addrB, addrA, 0, 64, "hello")
	for _, c := range []struct {
		what string
		to   model.MAC
		mark uint32
		want uint32
	}{
		{"the label of a node", direct.Label(1, far), 0, actShot},
		{"the label of a node, with the mark", direct.Label(1, far), r.nonce[0], actUnspec},
		{"a test of the link", direct.Label(0, far), 0, actUnspec},
		{"the label of an unknown node", direct.Label(1, netip.MustParseAddr("172.31.0.99")), 0, actUnspec},
		{"the address of a device", model.MAC{0x16, 1, 2, 3, 4, 5}, 0, actUnspec},
	} {
		if code, mark := r.runMarked(t, r.programs.FabricOut, r.fabric, frame(direct.Label(1, local), c.to, ip), c.mark); code != c.want || mark != c.mark {
			t.Errorf("a frame to %s has action %d and mark %#x, want action %d and mark %#x", c.what, code, mark, c.want, c.mark)
		}
	}
}

// fabric_tc answers a test request to this node's label of network 0, if the other node may
// send directly. It passes other frames to that label.
func TestALinkTestIsAnswered(t *testing.T) {
	tunnels, unknown := netip.MustParseAddr("172.31.0.77"), netip.MustParseAddr("172.31.0.78")
	r := newRig(t, model.MPLSoUDP, false, func(f *fib.Tables) {
		goesDirectly(f)
		f.Remotes[layout.AddressOf(tunnels)] = layout.Remote{ID: 2, Encaps: layout.Bits(model.MPLSoUDP, model.VXLAN)}
		f.Settings.LastLabel = layout.Network16(0x123)
	})
	broadcast := model.MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	for _, c := range []struct {
		what      string
		to        netip.Addr
		from      model.MAC
		etherType uint16
		kind      byte
		want      uint32
	}{
		{"a request", local, direct.Label(0, far), direct.EtherType, 1, actRedirect},
		{"a reply", local, direct.Label(0, far), direct.EtherType, 2, actUnspec},
		{"a request from a node that must not send directly", local, direct.Label(0, tunnels), direct.EtherType, 1, actUnspec},
		{"a request from an unknown node", local, direct.Label(0, unknown), direct.EtherType, 1, actUnspec},
		{"a request to another node", far, direct.Label(0, far), direct.EtherType, 1, actUnspec},
		{"a request from a broadcast address", local, broadcast, direct.EtherType, 1, actUnspec},
		{"a request from a label of network 1", local, direct.Label(1, far), direct.EtherType, 1, actUnspec},
		{"a frame with another EtherType", local, direct.Label(0, far), 0x88b6, 1, actUnspec},
	} {
		to, from := direct.Label(0, c.to), c.from
		request := binary.BigEndian.AppendUint16(append(append([]byte(nil), to[:]...), from[:]...), c.etherType)
		request = append(append(request, "vrouter direct 1"...), c.kind, 1, 2, 3, 4, 5, 6, 7, 8)
		request = append(request, make([]byte, 60-len(request))...)
		code, out := r.run(t, r.programs.FabricTc, r.fabric, request)
		if code != c.want {
			t.Errorf("%s has action %d, want %d", c.what, code, c.want)
		}
		if c.want != actRedirect {
			continue
		}
		want := append(append(append([]byte(nil), from[:]...), to[:]...), request[12:]...)
		want[14+16], want[14+16+9] = 2, 1|2         // a reply; the node restores both kinds of bridged frames
		want[14+16+10], want[14+16+11] = 0x01, 0x23 // Settings.LastLabel
		if !bytes.Equal(out, want) {
			t.Errorf("%s: the reply is\n%x, want\n%x", c.what, out, want)
		}
	}
}

// BenchmarkDirectPacket measures from_workload and fabric_tc for packets without a tunnel, less
// an empty program: with one host route, and with a million of which
// 20,000 random ones are used, so that the caches of the programs have few of them.
func BenchmarkDirectPacket(b *testing.B) {
	for _, v6 := range []bool{false, true} {
		for _, n := range []int{1, 1_000_000} {
			b.Run(fmt.Sprintf("IPv%d/%d routes", map[bool]int{false: 4, true: 6}[v6], n), func(b *testing.B) {
				r, others := rigWithRoutes(b, n, 20_000, v6, goesDirectly)
				empty := emptyProgram(b)
				near := addrA
				if v6 {
					near = addrA6
				}
				var out, in [][]byte
				for _, a := range others {
					out = append(out, frame(macA, model.RouterMAC, packet(b, near, a, 0, 64, "x")))
					in = append(in, frame(direct.Label(1, far), direct.Label(1, local), packet(b, a, near, 0, 64, "x")))
				}
				for _, x := range []struct {
					p      *ebpf.Program
					device int
					frame  []byte
				}{{r.programs.FromWorkload, r.vif, out[0]}, {r.programs.FabricTc, r.fabric, in[0]}} {
					if code, _ := r.run(b, x.p, x.device, x.frame); code != actRedirect {
						b.Fatalf("program %s returns action %d, want a redirect", x.p, code)
					}
				}
				for b.Loop() {
					i := 0
					each := func(p *ebpf.Program, device int, frames [][]byte) float64 {
						return nanoseconds(b, p, func() { r.run(b, p, device, frames[i%len(frames)]); i++ })
					}
					idle := each(empty, r.vif, out)
					b.ReportMetric(each(r.programs.FromWorkload, r.vif, out)-idle, "ns/from_workload")
					b.ReportMetric(each(r.programs.FabricTc, r.fabric, in)-idle, "ns/fabric_tc")
					b.ReportMetric(idle, "ns/empty")
				}
			})
		}
	}
}

// BenchmarkDirectPacketInALoop measures the same, but the kernel runs each program 200 times
// with one packet, so code and data are in the fastest caches. The programs write the MAC
// addresses that the frames already have, so only the TTL changes from run to run.
func BenchmarkDirectPacketInALoop(b *testing.B) {
	r := newRig(b, model.MPLSoUDP, false, func(f *fib.Tables) {
		goesDirectly(f)
		for device, v := range f.Vifs {
			if v.Nexthop == nhVif {
				v.MAC, v.RouterMAC = direct.Label(0x321, local), direct.Label(0x321, far)
				f.Vifs[device] = v
			}
		}
		n := f.Nexthops[nhVif]
		n.DMAC, n.SMAC = direct.Label(1, local), direct.Label(1, far)
		f.Nexthops[nhVif] = n
	})
	empty := emptyProgram(b)
	loop := func(p *ebpf.Program, device int, frame []byte) float64 {
		context := make([]byte, contextBytes)
		binary.NativeEndian.PutUint32(context[contextIngress:], uint32(device))
		binary.NativeEndian.PutUint32(context[contextIfindex:], uint32(device))
		return nanoseconds(b, p, func() {
			if code, err := p.Run(&ebpf.RunOptions{Data: frame, Context: context, Repeat: 200}); err != nil || code != actRedirect && p != empty {
				b.Fatalf("program %s returns action %d, want a redirect: %v", p, code, err)
			}
		})
	}
	for b.Loop() {
		idle := loop(empty, r.vif, frame(macA, macB, packet(b, addrA, addrB, 0, 255, "x")))
		b.ReportMetric(idle, "ns/empty")
		b.ReportMetric(loop(r.programs.FromWorkload, r.vif, frame(direct.Label(0x321, local), direct.Label(0x321, far), packet(b, addrA, addrB, 0, 255, "x")))-idle, "ns/from_workload")
		b.ReportMetric(loop(r.programs.FabricTc, r.fabric, frame(direct.Label(1, far), direct.Label(1, local), packet(b, addrB, addrA, 0, 64, "x")))-idle, "ns/fabric_tc")
	}
}
