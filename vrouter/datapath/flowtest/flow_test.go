package flowtest

import (
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cilium/ebpf"

	"windtunnel/internal/must"
	"windtunnel/vrouter/layout"
)

// outOnly lets the workload open whatever it likes, and nobody else.
var outOnly = policy{generation: 1, allowOut: true}

func TestRepliesPassAndUnsolicitedPacketsDoNot(t *testing.T) {
	for _, f := range families {
		l, r := f.local, f.remote
		echo, reply := uint8(8), uint8(0)
		if l.Addr().Is6() {
			echo, reply = 128, 129
		}
		for _, c := range []struct {
			name      string
			out, back []byte
		}{
			{"TCP", tcp(l, r, "S"), tcp(r, l, "SA")},
			{"UDP", udp(l, r, 1), udp(r, l, 1)},
			{"echo", icmp(l.Addr(), r.Addr(), echo, 5), icmp(r.Addr(), l.Addr(), reply, 5)},
			{"SCTP", raw(l.Addr(), r.Addr(), 132, []byte{0, 1, 0, 2, 0, 0, 0, 0}), raw(r.Addr(), l.Addr(), 132, []byte{0, 2, 0, 1, 0, 0, 0, 0})},
			{"GRE", raw(l.Addr(), r.Addr(), 47, make([]byte, 8)), raw(r.Addr(), l.Addr(), 47, make([]byte, 8))},
		} {
			t.Run(f.name+" "+c.name, func(t *testing.T) {
				h := load(t)
				h.apply(outOnly)
				h.expect("before it is asked for", denied, toWorkload, c.back)
				h.expect("asking", admitted, fromWorkload, c.out)
				h.expect("answer", admitted, toWorkload, c.back)
				must.Equal(t, 1, h.count(h.Flows))
			})
		}
	}
}

func TestAReplyFromAnotherPortOrAddressIsUnsolicited(t *testing.T) {
	h := load(t)
	h.apply(outOnly)
	h.expect("out", admitted, fromWorkload, udp(local4, remote4, 1))
	h.expect("other port", denied, toWorkload, udp(netip.AddrPortFrom(remote4.Addr(), 81), local4, 1))
	h.expect("other address", denied, toWorkload, udp(netip.AddrPortFrom(remote4.Addr().Next(), 80), local4, 1))
	h.expect("to another port", denied, toWorkload, udp(remote4, netip.AddrPortFrom(local4.Addr(), 1), 1))
	h.expect("other protocol", denied, toWorkload, tcp(remote4, local4, "SA"))
}

func TestAnEntryCountsPacketsAndBytesAndHasTheInitiator(t *testing.T) {
	h := load(t)
	h.apply(policy{generation: 9, allowIn: true})
	before := monotonic(t) - 20e6 // the coarse clock may be a tick behind
	in, out := udp(remote4, local4, 100), udp(local4, remote4, 11)
	h.expect("in", admitted, toWorkload, in)
	h.expect("out", admitted, fromWorkload, out)
	h.run(h.Admit, skbContext{Mark: vifKey, GsoSegs: 7, GsoSize: 10}, out)
	f := h.flow(flowKey(17, local4, remote4))
	must.Equal(t, [2]uint64{8, 1}, f.Packets)
	must.Equal(t, [2]uint64{2*uint64(len(out)) + 6*(14+20+8), uint64(len(in))}, f.Bytes)
	if f.Action != flowForward || f.Reply != 1 || f.Policy != 9 || f.Rule != 0 {
		t.Errorf("entry %+v, want forwarded, begun by the other end, by policy 9's default", f)
	}
	if f.CreatedNs < before || f.SeenNs < f.CreatedNs || f.SeenNs > monotonic(t) {
		t.Errorf("created at %d, seen at %d, which is not within the test", f.CreatedNs, f.SeenNs)
	}
}

func TestADenialIsCountedAndHasNoEntry(t *testing.T) {
	h := load(t)
	h.apply(outOnly)
	for range 3 {
		h.expect("in", denied, toWorkload, udp(remote4, local4, 10))
	}
	must.Equal(t, 0, h.count(h.Flows))
	var perCPU []uint64
	must.Succeed(t, h.Drops.Lookup(layout.DropKey{Vif: vifID, Reason: uint32(-denied)}, &perCPU))
	sum := uint64(0)
	for _, n := range perCPU {
		sum += n
	}
	must.Equal(t, 3, sum)
}

func TestADeniedEndCannotBlockWhatTheOtherMayOpen(t *testing.T) {
	for _, c := range []struct {
		name    string
		in, out []byte
	}{
		{"UDP", udp(remote4, local4, 1), udp(local4, remote4, 1)},
		{"TCP", tcp(remote4, local4, "S"), tcp(local4, remote4, "S")},
		{"TCP, both in the midst of a connection", tcp(remote4, local4, "A"), tcp(local4, remote4, "A")},
		{"echo", icmp(remote4.Addr(), local4.Addr(), 8, 5), icmp(local4.Addr(), remote4.Addr(), 8, 5)},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := load(t)
			h.apply(outOnly)
			h.expect("unasked", denied, toWorkload, c.in)
			h.expect("the workload opens it", admitted, fromWorkload, c.out)
			if f := h.flow(h.onlyKey()); f.Action != flowForward || f.Reply != 0 {
				t.Errorf("entry %+v, want forwarded, begun by the workload", f)
			}
		})
	}
}

// onlyKey is the key of the only flow.
func (h *harness) onlyKey() layout.FlowKey {
	h.t.Helper()
	var k layout.FlowKey
	must.Succeed(h.t, h.Flows.NextKey(nil, &k))
	return k
}

func TestAnEchoRequestIsNotAReplyToOneWithItsIdentifier(t *testing.T) {
	h := load(t)
	h.apply(outOnly)
	h.expect("ping", admitted, fromWorkload, icmp(local4.Addr(), remote4.Addr(), 8, 5))
	h.expect("ping from there", denied, toWorkload, icmp(remote4.Addr(), local4.Addr(), 8, 5))
	h.expect("pong", admitted, toWorkload, icmp(remote4.Addr(), local4.Addr(), 0, 5))
	h.expect("redirect", denied, toWorkload, icmp(remote4.Addr(), local4.Addr(), 5, 0))
	h.expect("pong of another identifier", denied, toWorkload, icmp(remote4.Addr(), local4.Addr(), 0, 6))
}

func TestAChangedPolicyJudgesKnownFlowsAgainAsTheyBegan(t *testing.T) {
	h := load(t)
	h.apply(outOnly)
	h.expect("out", admitted, fromWorkload, tcp(local4, remote4, "S"))
	h.expect("back", admitted, toWorkload, tcp(remote4, local4, "SA"))

	h.apply(policy{generation: 2, rules: []rule{{egress: true, allow: true, protocol: 6, first: 80, last: 80}}})
	h.expect("a reply comes first, and the flow is still allowed", admitted, toWorkload, tcp(remote4, local4, "A"))
	f := h.flow(flowKey(6, local4, remote4))
	if f.Policy != 2 || f.Rule != 1 || f.Packets != [2]uint64{1, 2} {
		t.Errorf("entry %+v, want decided by rule 1 of policy 2 and its packets kept", f)
	}

	h.apply(policy{generation: 3, allowIn: true})
	h.expect("no longer allowed", denied, toWorkload, tcp(remote4, local4, "A"))
	h.expect("nor from the workload", denied, fromWorkload, tcp(local4, remote4, "A"))
	h.expect("nor back, although anybody may open", denied, toWorkload, tcp(remote4, local4, "A"))
	h.expect("unless by a new connection", admitted, toWorkload, tcp(remote4, local4, "S"))

	h.apply(outOnly)
	h.expect("that one is cut", denied, toWorkload, tcp(remote4, local4, "A"))
}

func TestAnAckOfNoKnownConnectionIsJudgedByItsOwnDirection(t *testing.T) {
	h := load(t)
	h.apply(outOnly)
	h.expect("a reply whose flow was lost", denied, toWorkload, tcp(remote4, local4, "A"))
	h.expect("the workload goes on", admitted, fromWorkload, tcp(local4, remote4, "A"))
	h.expect("and has its reply", admitted, toWorkload, tcp(remote4, local4, "A"))
	if f := h.flow(flowKey(6, local4, remote4)); f.TCP != tcpEstablished || f.Reply != 0 {
		t.Errorf("entry %+v, want established, begun by the workload", f)
	}
}

func TestTheTableHasRoomForExactlyItsLimit(t *testing.T) {
	for _, limit := range []uint32{4, 700} {
		h := load(t, flowLimit(limit))
		h.apply(outOnly)
		frame := func(i uint32) []byte {
			return udp(netip.AddrPortFrom(local4.Addr(), uint16(2000+i)), remote4, 1)
		}
		for i := range limit {
			h.expect("within the limit", admitted, fromWorkload, frame(i))
		}
		h.expect("one too many", full, fromWorkload, frame(limit))
		h.expect("a denial needs no room", denied, toWorkload, udp(remote6, local6, 1))
		h.expect("a known flow", admitted, fromWorkload, frame(0))
		if n := h.count(h.Flows); n != int(limit) {
			t.Errorf("%d flows, want %d", n, limit)
		}
		must.Succeed(t, h.Flows.Delete(flowKey(17, netip.AddrPortFrom(local4.Addr(), 2000), remote4)))
		h.expect("room again", admitted, fromWorkload, frame(limit))
	}
}

func TestFlowsOfTwoVifsWithTheSameAddressesAreTwo(t *testing.T) {
	h := load(t)
	h.apply(outOnly)
	h.put(h.Vifs, uint32(12), layout.Vif{ID: 4, Flags: layout.VifPolicy})
	h.applyAt(4, policy{generation: 1})
	h.expect("out", admitted, fromWorkload, udp(local4, remote4, 1))
	must.Equal(t, denied, h.run(h.Admit, skbContext{Mark: 12, CB: [5]uint32{1}}, udp(remote4, local4, 1)))
	must.Equal(t, noVif, h.run(h.Admit, skbContext{Mark: 13}, udp(remote4, local4, 1)))
}

// Two processors are let go at the same new flow at the same time, so that now
// and then both find no entry and both make one.
func TestTwoProcessorsShareOneEntry(t *testing.T) {
	const flows, workers = 3000, 2
	h := load(t)
	h.apply(policy{generation: 1, allowIn: true, allowOut: true})
	var wait sync.WaitGroup
	var ready [flows]atomic.Int32
	for w := range workers {
		wait.Go(func() {
			for i := range flows {
				local := netip.AddrPortFrom(local4.Addr(), uint16(1000+i))
				d, frame := fromWorkload, udp(local, remote4, 1)
				if w == 1 && i%2 == 1 {
					d, frame = toWorkload, udp(remote4, local, 1)
				}
				run := &ebpf.RunOptions{Data: frame, Context: skbContext{Mark: vifKey, CB: [5]uint32{uint32(d)}}}
				for ready[i].Add(1); ready[i].Load() < workers; {
					runtime.Gosched()
				}
				if result, err := h.Admit.Run(run); err != nil || int32(result) != admitted {
					t.Errorf("flow %d: verdict %d, %v", i, int32(result), err)
				}
			}
		})
	}
	wait.Wait()
	must.Equal(t, flows, h.count(h.Flows))
	for i := range flows {
		f := h.flow(flowKey(17, netip.AddrPortFrom(local4.Addr(), uint16(1000+i)), remote4))
		if want := [2]uint64{2 - uint64(i%2), uint64(i % 2)}; f.Packets != want {
			t.Errorf("flow %d: packets %v, want %v", i, f.Packets, want)
		}
	}
}

func TestIPv4OptionsAreSkipped(t *testing.T) {
	h := load(t)
	h.apply(outOnly)
	plain := tcp(local4, remote4, "S")
	for words := range 11 {
		f := append(append(append([]byte(nil), plain[:34]...), make([]byte, 4*words)...), plain[34:]...)
		f[14] = byte(0x45 + words)
		h.expect("with options", admitted, fromWorkload, shortened(f, 20))
	}
	if f := h.flow(flowKey(6, local4, remote4)); f.Packets != [2]uint64{11, 0} || f.TCP != tcpSyn || h.count(h.Flows) != 1 {
		t.Errorf("entry %+v of %d, want all 11 SYNs in one flow", f, h.count(h.Flows))
	}
}

func TestFramesOtherThanIPAndNeighbourDiscoveryPassWithoutAFlow(t *testing.T) {
	h := load(t)
	h.apply(policy{generation: 1})
	arp := append(serialize(ethernet(0x0806)), make([]byte, 46)...)
	h.expect("ARP", admitted, toWorkload, arp)
	h.expect("unknown type", admitted, fromWorkload, append(serialize(ethernet(0x88b5)), make([]byte, 46)...))
	for kind := uint8(133); kind <= 137; kind++ {
		h.expect("neighbour discovery", admitted, fromWorkload, icmp6(local6.Addr(), remote6.Addr(), kind, 255, make([]byte, 20)))
	}
	must.Equal(t, 0, h.count(h.Flows))
	h.expect("what was routed is no neighbour discovery", denied, fromWorkload, icmp6(local6.Addr(), remote6.Addr(), 135, 254, make([]byte, 20)))
	h.expect("listener report", denied, fromWorkload, icmp6(local6.Addr(), remote6.Addr(), 143, 255, make([]byte, 20)))
}

func TestTheInnerVersionCountsWhereTheEthernetTypeIsTheOuterPackets(t *testing.T) {
	h := load(t)
	h.apply(outOnly)
	frame := udp(local6, remote6, 1)
	frame[12], frame[13] = 0x08, 0x00
	h.expect("IPv6 behind an IPv4 type", admitted, fromWorkload, frame)
	h.flow(flowKey(17, local6, remote6))
}

func TestAPacketThatIsCutShortIsMalformed(t *testing.T) {
	h := load(t)
	h.apply(policy{generation: 1, allowIn: true, allowOut: true})
	for _, c := range []struct {
		name      string
		frame     []byte
		header    int // bytes in front of the transport header
		transport int // bytes of the transport header that a packet needs
	}{
		{"TCP", tcp(local4, remote4, "S"), 34, 20},
		{"TCP over IPv6", tcp(local6, remote6, "S"), 54, 20},
		{"UDP", udp(local4, remote4, 4), 34, 8},
		{"UDP over IPv6", udp(local6, remote6, 4), 54, 8},
		{"echo", icmp(local4.Addr(), remote4.Addr(), 8, 1), 34, 8},
		{"echo over IPv6", icmp(local6.Addr(), remote6.Addr(), 128, 1), 54, 8},
	} {
		// BPF_PROG_TEST_RUN refuses a frame without room for the header that its
		// Ethernet type promises; IPv4's is the shorter one.
		c.frame[12], c.frame[13] = 0x08, 0x00
		for n := 14 + 20; n <= len(c.frame); n++ {
			want := malformed
			if n >= c.header+c.transport {
				want = admitted
			}
			if got := h.admit(fromWorkload, shortened(c.frame[:n], n-c.header)); got != want {
				t.Errorf("%s, first %d bytes: verdict %d, want %d", c.name, n, got, want)
			}
		}
	}
	short := tcp(local4, remote4, "S")
	short[14] = 0x44
	h.expect("IPv4 header of 16 bytes", malformed, fromWorkload, short)
	short[14] = 0x75
	h.expect("IP version 7", malformed, fromWorkload, short)
	mapped := tcp(local6, remote6, "S")
	for _, at := range []int{14 + 8, 14 + 24} {
		copy(mapped[at:], []byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff})
	}
	h.expect("IPv6 that poses as an IPv4 flow", malformed, fromWorkload, mapped)
}
