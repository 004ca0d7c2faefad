package datapath

import (
	"bytes"
	"net/netip"
	"testing"

	"github.com/cilium/ebpf"

	"windtunnel/vrouter/direct"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/model"
)

// goesDirectly changes scene: packets to the node far have no tunnel. Its network has a
// number of more than 8 bits.
func goesDirectly(f *fib.Tables) {
	t := f.Nexthops[nhTunnel]
	t.Encapsulation, t.DF, t.Port, t.MTU = model.Direct, false, 0, 1500
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
			t.Fatalf("to %s: action %d, %s", to, code, r.drop(t, nil))
		}
		want := frame(direct.Label(0x321, local), direct.Label(0x321, far), packet(t, from, to, 0xb9, 63, "hello"))
		if !bytes.Equal(out, want) {
			t.Errorf("to %s:\n%x, want labels, one hop less and nothing else changed\n%x", to, out, want)
		}
	}
	stats, err := r.VRFStats()
	if err != nil {
		t.Fatal(err)
	}
	if n := stats[1].Tx[encapNumbers[model.Direct]].Packets; n != 2 {
		t.Errorf("%d packets are counted as direct, want 2", n)
	}
}

// fabric_out lets tests of links pass, and drops frames to labels of other nodes that the
// programs did not send.
func TestOnlyTheProgramsSendToLabels(t *testing.T) {
	r := newRig(t, model.MPLSoUDP, false, goesDirectly)
	ip := packet(t, addrB, addrA, 0, 64, "hello")
	for _, c := range []struct {
		what string
		to   model.MAC
		want uint32
	}{
		{"a label of a node", direct.Label(1, far), actShot},
		{"a test of the link", direct.Label(0, far), actUnspec},
		{"a label of no node", direct.Label(1, netip.MustParseAddr("172.31.0.99")), actUnspec},
		{"a device's address", model.MAC{0x16, 1, 2, 3, 4, 5}, actUnspec},
	} {
		if code, _ := r.run(t, r.programs.FabricOut, r.fabric, frame(direct.Label(1, local), c.to, ip)); code != c.want {
			t.Errorf("%s: action %d, want %d", c.what, code, c.want)
		}
	}
}

// A request to the label of network 0 goes back as a reply. Other frames to that label
// pass.
func TestALinkTestIsAnswered(t *testing.T) {
	r := newRig(t, model.MPLSoUDP, false, goesDirectly)
	for _, c := range []struct {
		what string
		to   netip.Addr
		kind byte
		want uint32
	}{
		{"a request", local, 1, actRedirect},
		{"a reply", local, 2, actUnspec},
		{"a request to another node", far, 1, actUnspec},
		{"a request from a broadcast address", local, 3, actUnspec},
	} {
		to, from := direct.Label(0, c.to), direct.Label(0, far)
		if c.kind == 3 {
			c.kind, from = 1, model.MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
		}
		request := append(append(append([]byte(nil), to[:]...), from[:]...), 0x88, 0xb5)
		request = append(append(request, "vrouter direct 1"...), c.kind, 1, 2, 3, 4, 5, 6, 7, 8)
		request = append(request, make([]byte, 60-len(request))...)
		code, out := r.run(t, r.programs.FabricTc, r.fabric, request)
		if code != c.want {
			t.Errorf("%s: action %d, want %d", c.what, code, c.want)
		}
		if c.want != actRedirect {
			continue
		}
		want := append(append(append([]byte(nil), from[:]...), to[:]...), request[12:]...)
		want[14+16] = 2
		if !bytes.Equal(out, want) {
			t.Errorf("%s: the reply is\n%x, want\n%x", c.what, out, want)
		}
	}
}

// The time of one packet that goes directly, through the programs of both nodes.
func BenchmarkDirectPacket(b *testing.B) {
	r := newRig(b, model.MPLSoUDP, false, goesDirectly)
	out := frame(macA, model.RouterMAC, packet(b, addrA, addrB, 0, 64, "x"))
	in := frame(direct.Label(1, far), direct.Label(1, local), packet(b, addrB, addrA, 0, 64, "x"))
	for _, x := range []struct {
		p      *ebpf.Program
		device int
		frame  []byte
	}{{r.programs.FromWorkload, r.vif, out}, {r.programs.FabricTc, r.fabric, in}} {
		if code, _ := r.run(b, x.p, x.device, x.frame); code != actRedirect {
			b.Fatalf("%s: action %d", x.p, code)
		}
	}
	for b.Loop() {
		b.ReportMetric(nanoseconds(b, r.programs.FromWorkload, func() { r.run(b, r.programs.FromWorkload, r.vif, out) }), "ns/from_workload")
		b.ReportMetric(nanoseconds(b, r.programs.FabricTc, func() { r.run(b, r.programs.FabricTc, r.fabric, in) }), "ns/fabric_tc")
	}
}
