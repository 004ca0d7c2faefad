package flowtest

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"windtunnel/vrouter/layout"
)

// established is a flow of two directions with a current entry.
func (h *harness) established(protocol uint8, local, remote netip.AddrPort) layout.FlowKey {
	h.t.Helper()
	if protocol == 6 {
		h.expect("SYN", admitted, fromWorkload, tcp(local, remote, "S"))
		h.expect("SYN, ACK", admitted, toWorkload, tcp(remote, local, "SA"))
		h.expect("ACK", admitted, fromWorkload, tcp(local, remote, "A"))
	} else {
		h.expect("datagram", admitted, fromWorkload, udp(local, remote, 1))
		h.expect("reply", admitted, toWorkload, udp(remote, local, 1))
	}
	return flowKey(protocol, local, remote)
}

// longAgo is the time of a flow's last packet in these tests. The fast path does not change
// it, and admit() does. admit() regards a flow with this time as forgotten.
const longAgo = 1

// renews reports whether admit() judged the frame: unlike the fast path, it renews the flow
// or begins it again.
func (h *harness) renews(k layout.FlowKey, change func(*layout.Flow), d direction, frame []byte) bool {
	h.t.Helper()
	f := h.flow(k)
	f.SeenNs = longAgo
	if change != nil {
		change(&f)
	}
	h.put(h.Flows, k, f)
	h.admit(d, frame)
	after := h.flow(k)
	if after.SeenNs != longAgo {
		return true
	}
	packets, bytes := f.Packets, f.Bytes
	packets[d]++
	bytes[d] += uint64(len(frame))
	if after.Packets != packets || after.Bytes != bytes {
		h.t.Errorf("the flow has %v packets and %v bytes, want %v and %v", after.Packets, after.Bytes, packets, bytes)
	}
	f.Packets, f.Bytes = packets, bytes
	if after != f {
		h.t.Errorf("the entry is %+v, want %+v: only the counters may change", after, f)
	}
	return false
}

// The test is repeated if the kernel's clock has ticked so often that the flow was renewed.
func TestAPacketOfAKnownFlowChangesOnlyCounters(t *testing.T) {
	for _, a := range families {
		for _, protocol := range []uint8{6, 17} {
			h := load(t)
			h.apply(outOnly)
			k := h.established(protocol, a.local, a.remote)
			out, in := udp(a.local, a.remote, 1), udp(a.remote, a.local, 1)
			if protocol == 6 {
				out, in = tcp(a.local, a.remote, "A"), tcp(a.remote, a.local, "A")
			}
			for d, frame := range [][]byte{fromWorkload: out, toWorkload: in} {
				known := false
				for range 10 {
					h.admit(direction(d), frame) // renews the tick
					if known = !h.renews(k, nil, direction(d), frame); known {
						break
					}
				}
				if !known {
					t.Errorf("%s, protocol %d, direction %d: admit() judges the packet", a.name, protocol, d)
				}
			}
		}
	}
}

func TestAdmitJudgesOtherPacketsOfAKnownFlow(t *testing.T) {
	options := tcp(local4, remote4, "A")
	options[14] = 0x46 // the first 4 bytes of TCP are options of IP, and the ports are others
	fragment := udp(local4, remote4, 40)
	fragment[14+6] |= 0x20 // more fragments
	for _, c := range []struct {
		name     string
		protocol uint8
		frame    []byte
		change   func(*layout.Flow)
	}{
		{"SYN", 6, tcp(local4, remote4, "S"), nil},
		{"FIN", 6, tcp(local4, remote4, "FA"), nil},
		{"RST", 6, tcp(local4, remote4, "RA"), nil},
		{"a fragment", 17, fragment, nil},
		{"a flow that is not established", 6, tcp(local4, remote4, "A"), func(f *layout.Flow) { f.TCP = tcpSyn }},
		{"a denied flow", 17, udp(local4, remote4, 1), func(f *layout.Flow) { f.Action = flowDrop }},
		{"a flow of another policy", 17, udp(local4, remote4, 1), func(f *layout.Flow) { f.Policy = 77 }},
		{"a flow of no policy", 17, udp(local4, remote4, 1), func(f *layout.Flow) { f.Policy = 0 }},
		{"a flow that was not seen for a second", 17, udp(local4, remote4, 1), func(f *layout.Flow) { f.SeenTick -= leastHZ }},
	} {
		h := load(t)
		h.apply(outOnly)
		k := h.established(c.protocol, local4, remote4)
		if !h.renews(k, c.change, fromWorkload, c.frame) {
			t.Errorf("%s: the fast path takes the packet", c.name)
		}
	}
	h := load(t)
	h.apply(outOnly)
	k := h.established(6, local4, remote4)
	before := h.flow(k)
	h.admit(fromWorkload, options)
	if after := h.flow(k); after.Packets != before.Packets {
		t.Error("a packet with IP options is counted in the flow whose ports the options contain")
	}
}

// An IPv6 packet with mapped addresses would have the key of an IPv4 flow.
func TestMappedAddressesAreNotAnIPv4Flow(t *testing.T) {
	h := load(t)
	h.apply(outOnly)
	k := h.established(17, local4, remote4)
	before := h.flow(k)
	frame := udp(local6, remote6, 1)
	local, remote := local4.Addr().As16(), remote4.Addr().As16()
	copy(frame[14+8:], local[:])
	copy(frame[14+24:], remote[:])
	binary.BigEndian.PutUint16(frame[14+40:], local4.Port())
	h.expect("mapped", malformed, fromWorkload, frame)
	if after := h.flow(k); after.Packets != before.Packets {
		t.Errorf("the flow has %v packets, want %v", after.Packets, before.Packets)
	}
}

// With the removal of a policy, its generation becomes 0. Flows without a policy have
// generation 0 too.
func TestWithoutAPolicyNoFlowIsKnown(t *testing.T) {
	h := load(t)
	h.apply(outOnly)
	k := h.established(17, local4, remote4)
	h.put(h.Generations, uint32(vifID), uint32(0))
	if !h.renews(k, func(f *layout.Flow) { f.Policy = 0 }, fromWorkload, udp(local4, remote4, 1)) {
		t.Error("the fast path takes a packet of a flow without a policy")
	}
}

func TestAKnownFlowIsRenewed(t *testing.T) {
	h := load(t)
	h.apply(outOnly)
	k := h.established(17, local4, remote4)
	first := h.flow(k).SeenNs
	time.Sleep(200 * time.Millisecond) // more than the ticks of a current flow
	h.expect("later", admitted, fromWorkload, udp(local4, remote4, 1))
	if f := h.flow(k); f.SeenNs < first+150e6 {
		t.Errorf("the last packet was seen %d ns after the first, want 200 ms", f.SeenNs-first)
	}
}
