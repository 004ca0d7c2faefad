package datapath

import (
	"encoding/binary"
	"maps"
	"net/netip"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/gopacket/gopacket/layers"

	"windtunnel/internal/must"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
)

// fallbacks returns the counters of packets that direct cannot carry, by reason, of VRF 1.
func (r *rig) fallbacks(t *testing.T) map[string]uint64 {
	t.Helper()
	all := must.Get(r.Fallbacks())(t)
	by := map[string]uint64{}
	for k, n := range all {
		if k.VRF != 1 {
			t.Errorf("VRF %d has a counter; all packets are of VRF 1", k.VRF)
		}
		by[FallbackReasonOf(k.Reason).Name] = n
	}
	return by
}

// counted checks that exactly one packet was counted, for a reason.
func (r *rig) counted(t *testing.T, name string, before map[string]uint64, reason string) {
	t.Helper()
	want := maps.Clone(before)
	want[reason]++
	if got := r.fallbacks(t); !maps.Equal(got, want) {
		t.Errorf("%s: the counters are %v, want %v", name, got, want)
	}
}

// A trace does not count, nor does a packet that direct carries.
func TestOnlyFallbacksAreCounted(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*fib.Tables)
		sent   []byte
		traced []byte
	}{
		"translated": {addTranslation, frame(macA, model.RouterMAC, packet(t, addrA, addrB, 0, 64, "hello")), frame(macA, model.RouterMAC, packet(t, addrA, addrB, 0, 31, "hello"))},
		"bridged":    {bridgesDirectly, frame(macA, macB, packet(t, addrA, addrB, 0, 64, "hello")), frame(macA, macB, packet(t, addrA, addrC, 0, 64, "hello"))},
	} {
		r := newRig(t, model.VXLAN, false, c.change)
		if code, _ := r.run(t, r.programs.FromWorkload, r.vif, c.sent); code != actRedirect {
			t.Errorf("%s: action %d and drop reason %s, want a redirect", name, code, r.drop(t, nil))
		}
		if _, code := r.trace(t, r.vif, c.traced); code != actRedirect {
			t.Errorf("%s: the trace ends with action %d, want a redirect", name, code)
		}
		if got := r.fallbacks(t); len(got) != 0 {
			t.Errorf("%s: the counters are %v, want none", name, got)
		}
	}
}

// The copies of a broadcast frame take the tunnel, and each copy is counted. The kernel gives
// a copy to the programs that are attached to the vif.
func TestACopyOfABroadcastIsCounted(t *testing.T) {
	r := newRig(t, model.VXLAN, false, func(f *fib.Tables) {
		bridgesDirectly(f)
		f.SetMembers(nhFlood, []layout.Member{{Nexthop: nhVif2}, {Nexthop: nhBridged, Label: 1001}})
	})
	must.Succeed(t, r.AttachVif(r.vif))
	t.Cleanup(func() { r.Detach(r.vif) })
	everybody := model.MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	before := r.fallbacks(t)
	r.run(t, r.programs.FromWorkload, r.vif, frame(macA, everybody, packet(t, addrA, netip.MustParseAddr("10.1.255.255"), 0, 64, "hello")))
	for end := time.Now().Add(5 * time.Second); len(r.fallbacks(t)) == 0 && time.Now().Before(end); time.Sleep(time.Millisecond) {
	}
	r.counted(t, "a copy of a broadcast", before, "flooded")
}

// superpacket gives from_workload a frame of several segments. size: bytes of a segment's payload.
func (r *rig) superpacket(t *testing.T, frame []byte, segments, size uint32) (code uint32) {
	t.Helper()
	const contextSegments, contextSegmentSize = 164, 176 // gso_segs and gso_size in struct __sk_buff
	context := make([]byte, contextBytes)
	binary.NativeEndian.PutUint32(context[contextIngress:], uint32(r.vif))
	binary.NativeEndian.PutUint32(context[contextIfindex:], uint32(r.vif))
	binary.NativeEndian.PutUint32(context[contextSegments:], segments)
	binary.NativeEndian.PutUint32(context[contextSegmentSize:], size)
	code, err := r.programs.FromWorkload.Run(&ebpf.RunOptions{Data: frame, DataOut: make([]byte, len(frame)+256), Context: context})
	must.Succeed(t, err)
	return code
}

// A superpacket counts as the packets on the wire, also if it has no number of segments. BPF_PROG_TEST_RUN cannot send it into a
// tunnel, because its context has no type of segmentation.
func TestASuperpacketOfDatagramsIsCounted(t *testing.T) {
	r := newRig(t, model.MPLSoUDP, false, func(f *fib.Tables) {
		addTranslation(f)
		n := f.Nexthops[nhTranslated]
		n.Fallback = 0
		f.Nexthops[nhTranslated] = n
	})
	b := frame(macA, model.RouterMAC, serialize(t, transports(string(make([]byte, 300)))["UDP"][0](ip4(addrA, addrB, 64), layers.IPv6{})...))
	for i, segments := range []uint32{3, 0} {
		before, drops := r.fallbacks(t), must.Get(r.Drops())(t)
		if code := r.superpacket(t, b, segments, 100); r.drop(t, drops) != "untranslatable" {
			t.Errorf("action %d, drop reason %s, want untranslatable", code, r.drop(t, drops))
		}
		before["udp_segments"] += 2
		r.counted(t, "a superpacket of 3 datagrams", before, "udp_segments")
		must.Equal(t, uint64(3*(i+1)), must.Get(r.VifStats())(t)[1].RxPackets)
	}
}

// A superpacket above 64 KiB has the length 0. Its segments are too large to be translated
// without DF.
func TestASuperpacketWithoutALengthAndWithoutDFTakesTheTunnel(t *testing.T) {
	r := newRig(t, model.MPLSoUDP, false, func(f *fib.Tables) {
		addTranslation(f)
		n := f.Nexthops[nhTranslated]
		n.Fallback = 0
		f.Nexthops[nhTranslated] = n
	})
	for name, c := range map[string]struct {
		df     layers.IPv4Flag
		reason string
	}{"with DF": {layers.IPv4DontFragment, ""}, "without DF": {0, "without_df"}} {
		ip := ip4(addrA, addrB, 64)
		ip.Flags = c.df
		b := frame(macA, model.RouterMAC, serialize(t, transports(string(make([]byte, 3000)))["TCP"][0](ip, layers.IPv6{})...))
		binary.BigEndian.PutUint16(b[14+2:], 0)
		before := r.fallbacks(t)
		drops := must.Get(r.Drops())(t)
		r.superpacket(t, b, 3, 1000)
		if c.reason == "" {
			if got := r.drop(t, drops); got == "untranslatable" {
				t.Errorf("%s: the superpacket is not translated", name)
			}
			continue
		}
		if got := r.drop(t, drops); got != "untranslatable" {
			t.Errorf("%s: drop reason %s, want untranslatable", name, got)
		}
		before[c.reason] += 2
		r.counted(t, name, before, c.reason)
	}
}
