package flowtest

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/cilium/ebpf"

	"windtunnel/internal/must"
	"windtunnel/vrouter/layout"
)

// The composite nexthop that tests use.
const composite = 500

// compose makes the composite's members.
func (h *harness) compose(nexthops ...uint32) {
	h.t.Helper()
	for i := uint32(0); i < 16; i++ {
		k := layout.MemberKey{Nexthop: composite, Index: i}
		if int(i) < len(nexthops) {
			h.put(h.Members, k, layout.Member{Nexthop: nexthops[i], Label: 100})
		} else if err := h.Members.Delete(k); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			h.t.Fatal(err)
		}
	}
}

// choose returns the index of the member that the frame is to take.
func (h *harness) choose(frame []byte, members int, hash uint32) int32 {
	h.t.Helper()
	return h.run(h.Choose, skbContext{Mark: vifKey, CB: [5]uint32{composite, uint32(members), hash}}, frame)
}

// chooseByKernel is the same with the kernel's own hash of the flow.
func (h *harness) chooseByKernel(frame []byte, members int) int32 {
	h.t.Helper()
	return h.run(h.Choose, skbContext{Mark: vifKey, CB: [5]uint32{composite, uint32(members), 0, 1}}, frame)
}

func (h *harness) unpoliced() {
	h.put(h.Vifs, uint32(vifKey), layout.Vif{ID: vifID})
}

func from(port int) netip.AddrPort {
	return netip.AddrPortFrom(local4.Addr(), uint16(port))
}

func TestAFlowKeepsItsNexthopWhileMembersComeAndGo(t *testing.T) {
	for _, policed := range []bool{true, false} {
		h := load(t)
		h.apply(outOnly)
		if !policed {
			h.unpoliced()
		}
		const flows = 120
		chosen := make([]uint32, flows)
		// step asks for every flow's nexthop, by a hash that is new each time,
		// and counts those whose nexthop is not the one they had.
		step := func(hash uint32, nexthops ...uint32) (moved int) {
			h.compose(nexthops...)
			for i := range chosen {
				frame := tcp(from(1000+i), remote4, "S")
				if policed {
					h.expect("out", admitted, fromWorkload, frame)
				}
				index := h.choose(frame, len(nexthops), uint32(i)*7919+hash)
				if index < 0 || int(index) >= len(nexthops) {
					t.Fatalf("index %d of %d members", index, len(nexthops))
				}
				if now := nexthops[index]; chosen[i] != now {
					chosen[i] = now
					moved++
				}
			}
			return moved
		}
		count := func(nexthop uint32) (n int) {
			for _, c := range chosen {
				if c == nexthop {
					n++
				}
			}
			return n
		}
		must.Equal(t, flows, step(0, 21, 22, 23))
		must.Equal(t, 0, step(1, 21, 22, 23))
		must.Equal(t, 0, step(2, 23, 21, 22))
		of22 := count(22)
		if of22 == 0 || of22 == flows {
			t.Fatalf("%d of %d flows on one member, want some", of22, flows)
		}
		must.Equal(t, of22, step(3, 23, 21))
		must.Equal(t, 0, step(4, 24, 23, 22, 21))
		must.Equal(t, flows, h.count(h.Flows))
	}
}

func TestAnEntryNamesTheMemberAndItsComposite(t *testing.T) {
	h := load(t)
	h.unpoliced()
	h.compose(21, 22)
	frame := udp(local4, remote4, 10)
	must.Equal(t, 1, h.choose(frame, 2, 7))
	f := h.flow(flowKey(17, local4, remote4))
	if f.Member != 22 || f.Composite != composite || f.Action != flowForward || f.Reply != 0 {
		t.Errorf("entry %+v, want nexthop 22 of composite %d", f, composite)
	}
	if f.Packets != [2]uint64{1, 0} || f.Bytes != [2]uint64{uint64(len(frame)), 0} {
		t.Errorf("packets %v, bytes %v, want one of %d", f.Packets, f.Bytes, len(frame))
	}
	// Another composite, say after a route has changed.
	h.put(h.Members, layout.MemberKey{Nexthop: 501, Index: 0}, layout.Member{Nexthop: 22})
	h.put(h.Members, layout.MemberKey{Nexthop: 501, Index: 1}, layout.Member{Nexthop: 23})
	must.Equal(t, 1, h.run(h.Choose, skbContext{Mark: vifKey, CB: [5]uint32{501, 2, 7}}, frame))
	if f := h.flow(flowKey(17, local4, remote4)); f.Member != 23 || f.Composite != 501 {
		t.Errorf("entry %+v, want nexthop 23 of composite 501", f)
	}
}

func TestAForgottenFlowIsGivenANexthopAgain(t *testing.T) {
	h := load(t)
	h.unpoliced()
	h.compose(21, 22)
	frame := udp(local4, remote4, 10)
	h.choose(frame, 2, 0)
	must.Equal(t, 0, h.choose(frame, 2, 1))
	h.age(flowKey(17, local4, remote4), idleSeconds+2)
	must.Equal(t, 1, h.choose(frame, 2, 1))
	if f := h.flow(flowKey(17, local4, remote4)); f.Packets != [2]uint64{1, 0} || f.Member != 22 {
		t.Errorf("entry %+v, want a new flow of one packet to 22", f)
	}
}

func TestAConnectionOnTheReusedPortsOfAResetOneIsGivenANexthopAgain(t *testing.T) {
	h := load(t)
	h.unpoliced()
	h.compose(21, 22)
	for _, c := range []struct {
		flags string
		hash  uint32
		want  int32
	}{{"S", 0, 0}, {"A", 1, 0}, {"S", 1, 0}, {"R", 1, 0}, {"A", 1, 0}, {"S", 1, 1}, {"A", 0, 1}} {
		if got := h.choose(tcp(local4, remote4, c.flags), 2, c.hash); got != c.want {
			t.Errorf("%s with hash %d: index %d, want %d", c.flags, c.hash, got, c.want)
		}
	}
	if f := h.flow(flowKey(6, local4, remote4)); f.TCP != tcpSyn|tcpEstablished || f.Packets != [2]uint64{2, 0} {
		t.Errorf("entry %+v, want the second connection's two packets", f)
	}
}

func TestWithoutRoomOrAFlowTheHashAloneChooses(t *testing.T) {
	h := load(t, flowLimit(1))
	h.unpoliced()
	h.compose(21, 22, 23)
	h.choose(udp(local6, remote6, 1), 3, 0)
	arp := append(serialize(ethernet(0x0806)), make([]byte, 46)...)
	late := split(udp(local4, remote4, 4000), 1480, 1)[1]
	for name, frame := range map[string][]byte{"table full": udp(local4, remote4, 1), "ARP": arp, "fragment without head": late,
		"ICMP error": quoting(local4.Addr(), remote4.Addr(), 3, udp(remote4, local4, 1), 60)} {
		for hash := uint32(0); hash < 6; hash++ {
			if got := h.choose(frame, 3, hash); got != int32(hash%3) {
				t.Errorf("%s: hash %d: index %d, want %d", name, hash, got, hash%3)
			}
		}
	}
	must.Equal(t, 1, h.count(h.Flows))
	must.Equal(t, 0, h.choose(udp(local4, remote4, 1), 0, 5))
}

func TestFragmentsTakeTheirHeadsMember(t *testing.T) {
	h := load(t)
	h.unpoliced()
	h.compose(21, 22, 23, 24)
	for i, f := range split(udp(local4, remote4, 6000), 1480, 9) {
		if got := h.choose(f, 4, uint32(2+i)); got != 2 {
			t.Errorf("fragment %d: index %d, want 2", i, got)
		}
	}
}

func TestAPolicyThatComesLaterJudgesFlowsThatWereOnlyBalanced(t *testing.T) {
	h := load(t)
	h.unpoliced()
	h.compose(21, 22)
	frame := udp(local4, remote4, 1)
	h.choose(frame, 2, 0)
	h.put(h.Vifs, uint32(vifKey), layout.Vif{ID: vifID, Flags: layout.VifPolicy})
	h.apply(policy{generation: 1, allowIn: true})
	h.expect("out", denied, fromWorkload, frame)
}

// 10,000 flows over n members are a multinomial sample: chi-square over its
// degrees of freedom. The bounds are passed by a fair hash once in 10^9 runs.
func TestFlowsSpreadEvenlyOverMembers(t *testing.T) {
	const flows = 10000
	h := load(t, flowLimit(flows))
	h.unpoliced()
	for _, c := range []struct {
		members int
		bound   float64
	}{{2, 37.3}, {3, 41.4}, {7, 53.0}, {16, 72.7}} {
		nexthops := make([]uint32, c.members)
		for i := range nexthops {
			nexthops[i] = uint32(100*c.members + i)
		}
		h.compose(nexthops...)
		got := make([]int, c.members)
		for i := range flows {
			got[h.chooseByKernel(udp(from(2000+i), remote4, 1), c.members)]++
		}
		expected := float64(flows) / float64(c.members)
		chi := 0.0
		for _, n := range got {
			chi += (float64(n) - expected) * (float64(n) - expected) / expected
		}
		if chi > c.bound {
			t.Errorf("%d flows over %d members: %v, chi-square %.1f, want below %.1f", flows, c.members, got, chi, c.bound)
		}
		h.forget()
	}
}
