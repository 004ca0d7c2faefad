package flowtest

import (
	"net/netip"
	"testing"

	"windtunnel/internal/must"
)

func withPort(a netip.AddrPort, port uint16) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr(), port)
}

func TestAnICMPErrorPassesWithTheFlowThatItQuotes(t *testing.T) {
	for _, f := range families {
		l, r := f.local, f.remote
		router := netip.MustParseAddr("203.0.113.1")
		kinds, echo := []uint8{3, 11, 12}, uint8(8)
		if l.Addr().Is6() {
			router, kinds, echo = netip.MustParseAddr("2001:db8:ffff::1"), []uint8{1, 2, 3, 4}, 128
		}
		for _, q := range []struct {
			name string
			out  []byte
		}{
			{"TCP", tcp(l, r, "S")},
			{"UDP", udp(l, r, 100)},
			{"echo", icmp(l.Addr(), r.Addr(), echo, 3)},
		} {
			t.Run(f.name+" "+q.name, func(t *testing.T) {
				h := load(t)
				h.apply(outOnly)
				for _, kind := range kinds {
					h.expect("nothing was sent yet", denied, toWorkload, quoting(router, l.Addr(), kind, q.out, 60))
				}
				h.expect("out", admitted, fromWorkload, q.out)
				before := h.flow(h.onlyKey())
				for _, kind := range kinds {
					h.expect("error about it", admitted, toWorkload, quoting(router, l.Addr(), kind, q.out, 60))
					h.expect("to another than the sender", denied, toWorkload, quoting(router, r.Addr(), kind, q.out, 60))
					h.expect("as if the other end had sent it", denied, fromWorkload, quoting(l.Addr(), r.Addr(), kind, q.out, 60))
				}
				if after := h.flow(h.onlyKey()); after != before {
					t.Errorf("errors changed the flow from %+v to %+v", before, after)
				}
				must.Equal(t, 1, h.count(h.Flows))
			})
		}
	}
}

func TestAWorkloadMaySendErrorsAboutPacketsThatItReceived(t *testing.T) {
	for _, f := range families {
		kind := uint8(3)
		if f.local.Addr().Is6() {
			kind = 1
		}
		h := load(t)
		h.apply(policy{generation: 1, allowIn: true})
		in := udp(f.remote, f.local, 10)
		unreachable := quoting(f.local.Addr(), f.remote.Addr(), kind, in, 60)
		h.expect(f.name+": nothing was sent to it", denied, fromWorkload, unreachable)
		h.expect(f.name+": in", admitted, toWorkload, in)
		h.expect(f.name+": port unreachable", admitted, fromWorkload, unreachable)
	}
}

func TestAQuoteOfTheMinimumLengthSuffices(t *testing.T) {
	h := load(t)
	h.apply(outOnly)
	out := tcp(local4, remote4, "S")
	h.expect("out", admitted, fromWorkload, out)
	h.expect("header and 8 bytes", admitted, toWorkload, quoting(remote4.Addr(), local4.Addr(), 3, out, 28))
	h.expect("a byte less", malformed, toWorkload, quoting(remote4.Addr(), local4.Addr(), 3, out, 27))
	h.expect("no quote", malformed, toWorkload, quoting(remote4.Addr(), local4.Addr(), 3, out, 0))
}

func TestAnErrorAboutADeniedForgottenOrCutFlowIsDenied(t *testing.T) {
	h := load(t)
	h.apply(outOnly)
	in, out := udp(remote4, local4, 1), udp(local6, remote6, 1)
	h.expect("denied", denied, toWorkload, in)
	h.expect("error about it", denied, fromWorkload, quoting(local4.Addr(), remote4.Addr(), 3, in, 60))
	h.expect("out", admitted, fromWorkload, out)
	about := quoting(remote6.Addr(), local6.Addr(), 1, out, 60)
	h.expect("error about it", admitted, toWorkload, about)
	h.expect("error about an error", denied, toWorkload, quoting(remote6.Addr(), local6.Addr(), 1, about, 100))
	h.apply(policy{generation: 2})
	h.expect("cut by a new policy", denied, toWorkload, about)
	h.apply(policy{generation: 3, allowOut: true})
	h.expect("allowed by a newer one", admitted, toWorkload, about)
	h.age(flowKey(17, local6, remote6), idleSeconds+2)
	h.expect("forgotten", denied, toWorkload, about)
}

func TestAQuotedFragmentIsFoundByItsHead(t *testing.T) {
	for _, f := range families {
		kind := uint8(11)
		if f.local.Addr().Is6() {
			kind = 3
		}
		h := load(t)
		h.apply(outOnly)
		parts := split(udp(f.local, f.remote, 4000), 1480, 8)
		late := quoting(f.remote.Addr(), f.local.Addr(), kind, parts[2], 100)
		h.expect(f.name+": head unknown", withoutHead, toWorkload, late)
		h.expect(f.name+": head", admitted, fromWorkload, parts[0])
		h.expect(f.name+": quoting the last", admitted, toWorkload, late)
	}
}
