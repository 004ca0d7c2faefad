package flowtest

import (
	"encoding/binary"
	"fmt"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/vrouter/layout"
)

func TestFragmentsFollowTheirHead(t *testing.T) {
	for _, f := range families {
		t.Run(f.name, func(t *testing.T) {
			h := load(t)
			h.apply(outOnly)
			out := split(udp(f.local, f.remote, 4000), 1480, 77)
			if len(out) != 3 {
				t.Fatalf("%d fragments, want 3", len(out))
			}
			h.expect("later one first", withoutHead, fromWorkload, out[1])
			h.expect("head", admitted, fromWorkload, out[0])
			h.expect("last, out of order", admitted, fromWorkload, out[2])
			h.expect("middle", admitted, fromWorkload, out[1])
			h.expect("of another packet", withoutHead, fromWorkload, split(udp(f.local, f.remote, 4000), 1480, 78)[1])
			e := h.flow(flowKey(17, f.local, f.remote))
			if e.Packets != [2]uint64{3, 0} || h.count(h.Flows) != 1 {
				t.Errorf("entry %+v of %d, want 3 packets in one flow", e, h.count(h.Flows))
			}
			for i, back := range split(udp(f.remote, f.local, 4000), 1480, 79) {
				h.expect(fmt.Sprint("reply's fragment ", i), admitted, toWorkload, back)
			}
			if e := h.flow(flowKey(17, f.local, f.remote)); e.Packets != [2]uint64{3, 3} {
				t.Errorf("packets %v, want 3 each way", e.Packets)
			}
		})
	}
}

func TestFragmentsOfAnotherVifHaveAnotherHead(t *testing.T) {
	h := load(t)
	h.apply(outOnly)
	h.put(h.Vifs, uint32(12), layout.Vif{ID: 4, Flags: layout.VifPolicy})
	h.applyAt(4, outOnly)
	out := split(udp(local4, remote4, 4000), 1480, 77)
	h.expect("head", admitted, fromWorkload, out[0])
	if got := h.run(h.Admit, skbContext{Mark: 12}, out[1]); got != withoutHead {
		t.Errorf("later one at the other vif: verdict %d, want %d", got, withoutHead)
	}
	h.expect("later one", admitted, fromWorkload, out[1])
}

// A flood of first fragments must not replace the first fragments of another port or of the
// other direction.
func TestAFloodOfFragmentsDoesNotHarmOtherPorts(t *testing.T) {
	const other, flood = vifKey + 1, 20_000
	h := load(t)
	h.apply(policy{generation: 1, allowIn: true, allowOut: true})
	h.put(h.Vifs, uint32(other), layout.Vif{ID: other, VRF: 8, Flags: layout.VifPolicy})
	h.applyAt(other, outOnly)
	victims := split(udp(local4, remote4, 4000), 1480, 77)
	for id := range uint32(fragmentHeads) {
		h.expect("a first fragment of the victim", admitted, fromWorkload, split(udp(local4, remote4, 4000), 1480, 77-fragmentHeads+1+id)[0])
	}
	for id := range uint32(flood) {
		f := split(udp(local4, remote4, 1500), 1480, id)[0]
		if got := h.admitAt(other, fromWorkload, f); got != admitted {
			t.Fatalf("a first fragment of the flood has verdict %d, want %d", got, admitted)
		}
		if id < 1000 {
			h.expect("a first fragment to the victim", admitted, toWorkload, split(udp(remote4, local4, 1500), 1480, id)[0])
		}
	}
	h.expect("a later fragment of the victim's newest datagram", admitted, fromWorkload, victims[1])
	h.expect("a later fragment of the victim's oldest datagram", admitted, fromWorkload, split(udp(local4, remote4, 4000), 1480, 77-fragmentHeads+1)[2])
	h.expect("one more first fragment of the victim", admitted, fromWorkload, split(udp(local4, remote4, 4000), 1480, 78)[0])
	h.expect("a later fragment of the datagram that was replaced", withoutHead, fromWorkload, split(udp(local4, remote4, 4000), 1480, 77-fragmentHeads+1)[2])
}

func TestAHeadThatComesTwiceHasOneEntry(t *testing.T) {
	h := load(t)
	h.apply(outOnly)
	for range 3 {
		h.expect("head", admitted, fromWorkload, split(udp(local4, remote4, 4000), 1480, 77)[0])
	}
	must.Equal(t, 1, h.heads(vifID, fromWorkload))
}

func TestFragmentsOfADeniedPacketAreDenied(t *testing.T) {
	for _, f := range families {
		h := load(t)
		h.apply(outOnly)
		for i, in := range split(udp(f.remote, f.local, 4000), 1480, 5) {
			h.expect(fmt.Sprint(f.name, " fragment ", i), denied, toWorkload, in)
		}
	}
}

func TestFragmentsOfAnEchoFollowItsIdentifier(t *testing.T) {
	h := load(t)
	h.apply(outOnly)
	ping := icmp(local4.Addr(), remote4.Addr(), 8, 9)
	big := append(ping, make([]byte, 2000)...)
	pong := append(icmp(remote4.Addr(), local4.Addr(), 0, 9), make([]byte, 2000)...)
	for _, f := range split(big, 1480, 1) {
		h.expect("ping", admitted, fromWorkload, f)
	}
	for _, f := range split(pong, 1480, 1) {
		h.expect("pong", admitted, toWorkload, f)
	}
	if f := h.flow(flowKey(1, withPort(local4, 9), withPort(remote4, 0))); f.Packets != [2]uint64{2, 2} {
		t.Errorf("packets %v, want 2 each way", f.Packets)
	}
}

func TestFragmentsThatHideTheTransportHeaderAreMalformed(t *testing.T) {
	for _, f := range families {
		h := load(t)
		h.apply(policy{generation: 1, allowIn: true, allowOut: true})
		tiny := split(tcp(f.local, f.remote, "S"), 8, 3)
		h.expect(f.name+": head without TCP's flags", malformed, fromWorkload, tiny[0])
		h.expect(f.name+": fragment that would overwrite them", malformed, fromWorkload, tiny[1])
	}
}

func TestIPv6ExtensionHeadersAreSkipped(t *testing.T) {
	const hopByHop, routing, destination, tcpNext = 0, 43, 60, 6
	frame := tcp(local6, remote6, "S")
	join := func(all ...[]byte) (joined []byte) {
		for _, e := range all {
			joined = append(joined, e...)
		}
		return joined
	}
	for _, c := range []struct {
		name  string
		first uint8
		e     []byte
		want  int32
	}{
		{"hop-by-hop", hopByHop, extension(tcpNext, 0), admitted},
		{"routing of 24 bytes", routing, extension(tcpNext, 2), admitted},
		{"destination", destination, extension(tcpNext, 0), admitted},
		{"atomic fragment", 44, fragmentHeader(tcpNext, 0, false, 1), admitted},
		{"four", hopByHop, join(extension(destination, 0), extension(routing, 1), extension(destination, 0), extension(tcpNext, 0)), admitted},
		{"more than the standard has", hopByHop, join(extension(destination, 0), extension(destination, 0), extension(destination, 0), extension(destination, 0), extension(destination, 0), extension(tcpNext, 0)), malformed},
		{"two fragment headers", 44, join(fragmentHeader(44, 0, true, 1), fragmentHeader(tcpNext, 0, true, 1)), malformed},
		{"longer than the packet", hopByHop, append(extension(tcpNext, 0)[:1], 200, 0, 0, 0, 0, 0, 0), malformed},
		{"no next header in sight", hopByHop, extension(tcpNext, 0)[:0], malformed},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := load(t)
			h.apply(policy{generation: 1, rules: []rule{{egress: true, allow: true, protocol: 6, first: 80, last: 80}}})
			f := extend(frame, c.first, c.e)
			if len(c.e) == 0 {
				f = f[:54]
			}
			h.expect(c.name, c.want, fromWorkload, f)
			if c.want == admitted && h.flow(flowKey(6, local6, remote6)).TCP != tcpSyn {
				t.Error("the flow's TCP flags were not read")
			}
		})
	}
}

// A destination header behind the fragment header is in the head only: what
// follows learns the transport from there.
func TestLaterIPv6FragmentsTakeTheTransportFromTheirHead(t *testing.T) {
	h := load(t)
	h.apply(outOnly)
	const destination = 60
	head := extend(udp(local6, remote6, 984), 44, append(fragmentHeader(destination, 0, true, 4), extension(17, 0)...))
	later := extend(raw(local6.Addr(), remote6.Addr(), 0, make([]byte, 200)), 44, fragmentHeader(destination, 1000, false, 4))
	h.expect("head", admitted, fromWorkload, head)
	h.expect("later", admitted, fromWorkload, later)
	if f := h.flow(flowKey(17, local6, remote6)); f.Packets != [2]uint64{2, 0} || h.count(h.Flows) != 1 {
		t.Errorf("entry %+v of %d, want both fragments in the UDP flow", f, h.count(h.Flows))
	}
}

// shortened sets the length of a frame's IP packet to n bytes behind the header. The rest of the
// frame is then padding.
func shortened(frame []byte, n int) []byte {
	f := append([]byte(nil), frame...)
	if f[14]>>4 == 6 {
		binary.BigEndian.PutUint16(f[14+4:], uint16(n))
	} else {
		binary.BigEndian.PutUint16(f[14+2:], uint16(n+int(f[14]&15)*4))
	}
	return f
}

// A receiver does not see the padding of a frame. So no header there may decide about a packet,
// and a first fragment has all headers (RFC 7112).
func TestHeadersInThePaddingAreMalformed(t *testing.T) {
	const destination, udpNext, tcpNext = 60, 17, 6
	head := func(frame []byte, n int) []byte {
		f := shortened(frame, n)
		f[14+6] |= 0x20 // IPv4: more fragments
		return f
	}
	of6 := func(next uint8, e ...byte) []byte { return extend(udp(remote6, local6, 9), next, e) }
	hidden := append(fragmentHeader(destination, 0, true, 9), extension(udpNext, 1)...)
	quote := quoting(remote6.Addr(), local6.Addr(), 1, udp(local6, remote6, 9), 60)
	frames := map[string][]byte{
		"first fragment, 8 of 16 bytes of options":            shortened(of6(44, hidden...), 16),
		"first fragment, options without transport header":    shortened(of6(44, hidden...), 24),
		"first fragment, options, half of a transport header": shortened(of6(44, hidden...), 28),
		"first fragment, protocol without ports":              shortened(extend(raw(remote6.Addr(), local6.Addr(), 0, make([]byte, 20)), 44, append(fragmentHeader(destination, 0, true, 9), extension(47, 1)...)), 16),
		"fragment header":                                     shortened(of6(44, fragmentHeader(udpNext, 0, true, 9)...), 4),
		"whole, 8 of 16 bytes of options":                     shortened(of6(destination, extension(udpNext, 1)...), 8),
		"whole, half of a header, IPv6":                       shortened(udp(remote6, local6, 9), 4),
		"whole, half of a header, IPv4":                       shortened(udp(remote4, local4, 9), 4),
		"first fragment, IPv4":                                head(udp(remote4, local4, 9), 4),
		"first fragment, 16 bytes of TCP":                     head(tcp(remote4, local4, "S"), 16),
		"SYN, 16 bytes of TCP":                                shortened(tcp(remote6, local6, "S"), 16),
		"first fragment, 16 bytes of TCP6":                    shortened(extend(tcp(remote6, local6, "S"), 44, fragmentHeader(tcpNext, 0, true, 9)), 24),
		"echo":                                                shortened(icmp(remote4.Addr(), local4.Addr(), 8, 3), 4),
		"echo, IPv6":                                          shortened(icmp(remote6.Addr(), local6.Addr(), 128, 3), 4),
		"quoted address":                                      shortened(quote, 8+30),
		"quoted transport header":                             shortened(quote, 8+44),
		"IPv4 length below its header":                        shortened(udp(remote4, local4, 9), -1),
		"IPv4 length above the frame":                         shortened(udp(remote4, local4, 9), 100),
		"IPv6 length above the frame":                         shortened(udp(remote6, local6, 9), 18),
		"length 0, but no superpacket":                        shortened(udp(remote6, local6, 9), 0),
	}
	h := load(t)
	h.apply(policy{generation: 1, allowIn: true, allowOut: true})
	for name, f := range frames {
		h.expect(name, malformed, toWorkload, f)
	}
	must.Equal(t, 0, h.heads(vifID, toWorkload))
	for name, f := range map[string][]byte{
		"padding behind a datagram":       append(udp(remote6, local6, 9), make([]byte, 20)...),
		"padding behind a segment":        append(tcp(remote4, local4, "S"), make([]byte, 6)...),
		"padding behind a first fragment": append(split(udp(remote6, local6, 3000), 1480, 6)[0], make([]byte, 20)...),
		"a protocol without a header":     raw(remote6.Addr(), local6.Addr(), 59, nil),
	} {
		h.expect(name, admitted, toWorkload, f)
	}
	superpacket := skbContext{Mark: vifKey, GsoSize: 1000, GsoSegs: 3, CB: [5]uint32{uint32(toWorkload)}}
	for _, a := range families {
		segment := append(tcp(a.remote, a.local, "A"), make([]byte, 3000)...)
		none := shortened(segment, map[bool]int{true: -20}[a.local.Addr().Is4()])
		if got := h.run(h.Admit, superpacket, none); got != admitted {
			t.Errorf("%s: a superpacket whose length field is 0 has verdict %d", a.name, got)
		}
	}
	if got := h.run(h.Admit, superpacket, frames["first fragment, 8 of 16 bytes of options"]); got != malformed {
		t.Errorf("a superpacket whose headers are in the padding has verdict %d", got)
	}
}

// The fast path does not read the padding either.
func TestAKnownFlowDoesNotTakeAPacketWithoutItsHeader(t *testing.T) {
	for _, a := range families {
		h := load(t)
		h.apply(outOnly)
		k := h.established(17, a.local, a.remote)
		before := h.flow(k).Packets
		h.expect(a.name, malformed, fromWorkload, shortened(udp(a.local, a.remote, 1), 7))
		if after := h.flow(k).Packets; after != before {
			t.Errorf("%s: the flow has %v packets, want %v", a.name, after, before)
		}
	}
}
