package datapath

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/vrouter/direct"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
)

const nhOutside = nhVif2 + 1

// outsides are the addresses of a test for IPv4 and IPv6. Vif 2 connects the node.
var outsides = map[string]struct{ workload, other, pool, floating, outside netip.Addr }{
	"IPv4": {addrA, netip.MustParseAddr("10.1.0.20"), netip.MustParseAddr("203.0.113.4"), netip.MustParseAddr("203.0.113.9"), netip.MustParseAddr("198.51.100.7")},
	"IPv6": {addrA6, netip.MustParseAddr("fd00:1::20"), netip.MustParseAddr("2001:db8::4"), netip.MustParseAddr("2001:db8::9"), netip.MustParseAddr("2001:db8:f::7")},
}

// withPool makes vif 2 the node's way out of the network, with an address of the pool and the ports first to last. Workload a
// has two addresses of each family. policy: the vif of workload a has a policy that allows only what it begins; so has
// the node's vif.
func withPool(first, last uint16, policy bool) func(*fib.Tables) {
	return func(f *fib.Tables) {
		if policy {
			withRules(0)(f)
			f.Policies[1] = fib.Policy{AllowOut: true}
			f.Policies[2] = fib.Policy{AllowIn: true}
		}
		for device, v := range f.Vifs {
			if v.ID == 2 {
				v.Flags |= layout.VifNode | layout.VifServices | layout.If[uint16](policy, layout.VifPolicy)
				v.Gateway6 = layout.AddressOf(gateway6)
				v.SetSources([]netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")})
			} else {
				v.SetSources([]netip.Prefix{netip.MustParsePrefix("10.1.0.0/24"), netip.MustParsePrefix("fd00:1::/64")})
			}
			f.Vifs[device] = v
		}
		out := f.Nexthops[nhVif2]
		out.Flags |= layout.NexthopNAT
		f.Nexthops[nhOutside] = out
		f.Routes[fib.RouteKey{VRF: 1, Prefix: netip.MustParsePrefix("0.0.0.0/0")}] = layout.Route{Nexthop: nhOutside}
		f.Routes[fib.RouteKey{VRF: 1, Prefix: netip.MustParsePrefix("::/0")}] = layout.Route{Nexthop: nhOutside}
		f.NATs = map[uint32]layout.NAT{2: {VRF: 1, FirstPort: first, LastPort: last}}
		for _, a := range outsides {
			f.Routes[fib.RouteKey{VRF: 1, Prefix: netip.PrefixFrom(a.other, a.other.BitLen())}] = layout.Route{Nexthop: nhVif}
			n := f.NATs[2]
			if a.pool.Is4() {
				n.Address4 = layout.AddressOf(a.pool)
			} else {
				n.Address6 = layout.AddressOf(a.pool)
			}
			f.NATs[2] = n
		}
	}
}

// withFloating gives workload a floating addresses.
func withFloating(policy bool) func(*fib.Tables) {
	return func(f *fib.Tables) {
		withPool(1024, 65535, policy)(f)
		if policy {
			f.Policies[1] = fib.Policy{AllowIn: true, AllowOut: true}
			f.Policies[2] = fib.Policy{AllowIn: true, AllowOut: true}
		}
		f.Floatings = map[layout.FloatingKey]layout.Floating{}
		for _, a := range outsides {
			w, o := layout.AddressOf(a.workload), layout.AddressOf(a.floating)
			f.Floatings[layout.FloatingKey{Vif: 2, Address: w}] = layout.Floating{Other: o}
			f.Floatings[layout.FloatingKey{Vif: 2, Address: o}] = layout.Floating{Other: w}
		}
	}
}

// try gives from_workload an IP packet of workload a, or of the node, and returns the packet and the drop reason.
func (r *rig) try(t *testing.T, fromNode bool, ip []byte) (out []byte, reason string) {
	t.Helper()
	device, mac := r.vif, macA
	if fromNode {
		device, mac = r.vif2, model.MAC{2, 0, 0, 0, 0, 0xc}
	}
	before, _ := r.Drops()
	code, out := r.run(t, r.programs.FromWorkload, device, frame(mac, model.RouterMAC, ip))
	if code != actRedirect {
		return nil, r.drop(t, before)
	}
	return out[14:], ""
}

// out returns the packet that the node gets from workload a; in: the one that the workload gets from the node.
func (r *rig) out(t *testing.T, ip []byte) []byte { t.Helper(); return r.passed(t, false, ip) }
func (r *rig) in(t *testing.T, ip []byte) []byte  { t.Helper(); return r.passed(t, true, ip) }

func (r *rig) passed(t *testing.T, fromNode bool, ip []byte) []byte {
	t.Helper()
	out, reason := r.try(t, fromNode, ip)
	if out == nil {
		t.Fatalf("%x was dropped: %s", ip, reason)
	}
	return out
}

// mappedOut sends a segment of workload a to the outside, and returns it as it leaves.
func (r *rig) mappedOut(t *testing.T, s segment) segment {
	t.Helper()
	return segmentOf(t, r.out(t, s.packet(t)))
}

func TestConnectionsToTheOutsideHaveAnAddressOfThePool(t *testing.T) {
	for name, a := range outsides {
		for _, policy := range []bool{false, true} {
			for protocol, flags := range map[uint8][][2]string{
				unix.IPPROTO_UDP: {{"", ""}, {"", ""}, {"", ""}},
				unix.IPPROTO_TCP: {{"S", "AS"}, {"A", "A"}, {"A", "A"}, {"AF", "AF"}, {"A", "A"}, {"S", "AS"}, {"A", "A"}},
			} {
				t.Run(fmt.Sprint(name, " policy ", policy, " protocol ", protocol), func(t *testing.T) {
					r := newRig(t, model.MPLSoUDP, false, withPool(1024, 65535, policy))
					for _, port := range []uint16{40000, 53} {
						var mapped netip.AddrPort
						for _, f := range flags {
							sent := r.mappedOut(t, segment{at(a.workload, port), at(a.outside, 80), protocol, f[0]})
							if !mapped.IsValid() || policy && f[0] == "S" { // a policy judges the connection anew
								mapped = sent.from
							}
							if want := (segment{at(a.pool, mapped.Port()), at(a.outside, 80), protocol, f[0]}); sent != want || mapped.Port() < 1024 || port >= 1024 && mapped.Port() != port && !policy {
								t.Errorf("port %d: sent %v, want %v", port, sent, want)
							}
							got := segmentOf(t, r.in(t, segment{at(a.outside, 80), mapped, protocol, f[1]}.packet(t)))
							if want := (segment{at(a.outside, 80), at(a.workload, port), protocol, f[1]}); got != want {
								t.Errorf("port %d: the answer is %v, want %v", port, got, want)
							}
						}
					}
				})
			}
		}
	}
}

// echo is an ICMP echo request or reply.
func echo(t testing.TB, from, to netip.Addr, reply bool, id uint16) []byte {
	if from.Is4() {
		kind := uint8(layers.ICMPv4TypeEchoRequest)
		if reply {
			kind = layers.ICMPv4TypeEchoReply
		}
		return serialize(t, &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolICMPv4, SrcIP: from.AsSlice(), DstIP: to.AsSlice()},
			&layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(kind, 0), Id: id, Seq: 3}, gopacket.Payload("echo!"))
	}
	kind := uint8(layers.ICMPv6TypeEchoRequest)
	if reply {
		kind = layers.ICMPv6TypeEchoReply
	}
	ip := &layers.IPv6{Version: 6, HopLimit: 64, NextHeader: layers.IPProtocolICMPv6, SrcIP: from.AsSlice(), DstIP: to.AsSlice()}
	icmp := &layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(kind, 0)}
	icmp.SetNetworkLayerForChecksum(ip)
	return serialize(t, ip, icmp, &layers.ICMPv6Echo{Identifier: id, SeqNumber: 3}, gopacket.Payload("echo!"))
}

// idOf returns the addresses and the identifier of an echo. The test fails if one of its checksums is wrong.
func idOf(t testing.TB, ip []byte) (from, to netip.Addr, id uint16) {
	t.Helper()
	if !checksumIsRight(ip) || ip[0]>>4 == 4 && sum16(ip[:20]) != 0xffff {
		t.Errorf("a checksum of %x is wrong", ip)
	}
	from, to, payload := addressesOf(ip)
	return from, to, binary.BigEndian.Uint16(payload[4:])
}

func TestWorkloadsPingTheOutsideWithDifferentIdentifiers(t *testing.T) {
	for name, a := range outsides {
		r := newRig(t, model.MPLSoUDP, false, withPool(1024, 65535, false))
		ids := map[uint16]bool{}
		for _, w := range []netip.Addr{a.workload, a.other} {
			for range 2 {
				from, to, id := idOf(t, r.out(t, echo(t, w, a.outside, false, 4000)))
				if from != a.pool || to != a.outside {
					t.Errorf("%s: the request goes from %s to %s", name, from, to)
				}
				ids[id] = true
				from, to, id = idOf(t, r.in(t, echo(t, a.outside, a.pool, true, id)))
				if from != a.outside || to != w || id != 4000 {
					t.Errorf("%s: the reply goes from %s to %s with identifier %d", name, from, to, id)
				}
			}
		}
		if len(ids) != 2 {
			t.Errorf("%s: two workloads use the identifiers %v", name, ids)
		}
		if _, reason := r.try(t, true, echo(t, a.outside, a.pool, true, 9)); reason != "nat_unknown" {
			t.Errorf("%s: a reply that no one asked for: %q", name, reason)
		}
	}
}

func TestTwoWorkloadsWithOnePortGetDifferentPorts(t *testing.T) {
	a := outsides["IPv4"]
	r := newRig(t, model.MPLSoUDP, false, withPool(1024, 65535, false))
	first := r.mappedOut(t, segment{at(a.workload, 40000), at(a.outside, 80), unix.IPPROTO_TCP, "S"})
	second := r.mappedOut(t, segment{at(a.other, 40000), at(a.outside, 80), unix.IPPROTO_TCP, "S"})
	elsewhere := r.mappedOut(t, segment{at(a.other, 40000), at(a.outside, 81), unix.IPPROTO_TCP, "S"})
	if first.from.Port() != 40000 || second.from.Port() == 40000 || elsewhere.from.Port() != 40000 {
		t.Errorf("ports %d, %d and %d", first.from.Port(), second.from.Port(), elsewhere.from.Port())
	}
	for w, s := range map[netip.Addr]segment{a.workload: first, a.other: second} {
		got := segmentOf(t, r.in(t, segment{s.to, s.from, unix.IPPROTO_TCP, "AS"}.packet(t)))
		if want := (segment{s.to, at(w, 40000), unix.IPPROTO_TCP, "AS"}); got != want {
			t.Errorf("the answer is %v, want %v", got, want)
		}
	}
}

// age makes all flows older.
func (r *rig) age(t testing.TB, ns uint64) {
	t.Helper()
	all := map[layout.FlowKey]layout.Flow{}
	must.Succeed(t, table[layout.FlowKey, layout.Flow]{"flows", r.maps.Flows, false}.each(func(k layout.FlowKey, v layout.Flow) { all[k] = v }))
	for k, v := range all {
		v.SeenNs, v.SeenTick = v.SeenNs-ns, v.SeenTick-100000
		must.Succeed(t, r.maps.Flows.Put(k, v))
	}
}

func TestWithoutAFreePortAConnectionIsDroppedAndExpiredOnesMakeRoom(t *testing.T) {
	const second = 1_000_000_000
	for name, a := range outsides {
		r := newRig(t, model.MPLSoUDP, false, withPool(5000, 5003, false))
		open := func(port, to uint16) (segment, string) {
			out, reason := r.try(t, false, segment{at(a.workload, port), at(a.outside, to), unix.IPPROTO_UDP, ""}.packet(t))
			if reason != "" {
				return segment{}, reason
			}
			return segmentOf(t, out), ""
		}
		used := map[uint16]bool{}
		for i := range uint16(4) {
			s, reason := open(100+i, 53)
			if used[s.from.Port()] || s.from.Port() < 5000 || s.from.Port() > 5003 || reason != "" {
				t.Errorf("%s: connection %d has port %d, %s", name, i, s.from.Port(), reason)
			}
			used[s.from.Port()] = true
		}
		if _, reason := open(200, 53); reason != "nat_ports" {
			t.Errorf("%s: without a free port: %q", name, reason)
		}
		if s, reason := open(200, 54); reason != "" || s.from.Addr() != a.pool {
			t.Errorf("%s: to another destination: %v, %q", name, s, reason)
		}
		r.age(t, 200*second)
		s, reason := open(300, 53)
		if reason != "" || !used[s.from.Port()] {
			t.Errorf("%s: after the others have expired: %v, %q", name, s, reason)
		}
		got := segmentOf(t, r.in(t, segment{s.to, s.from, unix.IPPROTO_UDP, ""}.packet(t)))
		if want := (segment{s.to, at(a.workload, 300), unix.IPPROTO_UDP, ""}); got != want {
			t.Errorf("%s: the answer is %v, want %v", name, got, want)
		}
		// The flow that had the port gets another one, and not the other flow's answers.
		for i := range uint16(4) {
			if again, reason := open(100+i, 53); reason == "" && again.from == s.from {
				t.Errorf("%s: two flows have port %d", name, s.from.Port())
			}
		}
	}
}

func TestAnAckOfTheWorkloadAloneDoesNotKeepAPort(t *testing.T) {
	const second = 1_000_000_000
	a := outsides["IPv4"]
	for _, answered := range []bool{false, true} {
		r := newRig(t, model.MPLSoUDP, false, withPool(5000, 5000, false))
		s := r.mappedOut(t, segment{at(a.workload, 1), at(a.outside, 80), unix.IPPROTO_TCP, "S"})
		if answered {
			r.in(t, segment{s.to, s.from, unix.IPPROTO_TCP, "AS"}.packet(t))
		}
		r.mappedOut(t, segment{at(a.workload, 1), at(a.outside, 80), unix.IPPROTO_TCP, "A"})
		r.age(t, 60*second)
		_, reason := r.try(t, false, segment{at(a.workload, 2), at(a.outside, 80), unix.IPPROTO_TCP, "S"}.packet(t))
		if want := map[bool]string{true: "nat_ports"}[answered]; reason != want {
			t.Errorf("answered %v: the second connection: %q, want %q", answered, reason, want)
		}
	}
}

func TestPacketsThatNoPortCanDistinguish(t *testing.T) {
	for name, a := range outsides {
		r := newRig(t, model.MPLSoUDP, false, withPool(1024, 65535, false))
		gre := segment{at(a.workload, 1), at(a.outside, 1), unix.IPPROTO_SCTP, ""}.packet(t)
		if gre[0]>>4 == 4 {
			gre[9] = unix.IPPROTO_GRE
			gre = withHops(gre, 64)
		} else {
			gre[6] = unix.IPPROTO_GRE
		}
		if _, reason := r.try(t, false, gre); reason != "nat_protocol" {
			t.Errorf("%s: GRE: %q", name, reason)
		}
		for _, protocol := range []uint8{unix.IPPROTO_TCP, unix.IPPROTO_UDP} {
			if _, reason := r.try(t, true, segment{at(a.outside, 80), at(a.pool, 4000), protocol, "S"}.packet(t)); reason != "nat_unknown" {
				t.Errorf("%s: protocol %d from outside: %q", name, protocol, reason)
			}
		}
		// The kernel knows the connection of such a packet.
		s := segment{at(a.workload, 80), at(a.outside, 4000), unix.IPPROTO_TCP, "AS"}
		if got := r.mappedOut(t, s); got != s {
			t.Errorf("%s: %v became %v", name, s, got)
		}
		// SCTP: its checksum includes the ports.
		sctp := segment{at(a.workload, 3000), at(a.outside, 3000), unix.IPPROTO_SCTP, ""}.packet(t)
		from, _, payload := addressesOf(r.out(t, sctp))
		if _, _, was := addressesOf(sctp); from != a.pool || string(payload) != string(was) {
			t.Errorf("%s: SCTP leaves from %s, with %x for %x", name, from, payload, was)
		}
	}
}

func TestFragmentsToTheOutsideHaveOneAddress(t *testing.T) {
	for name, a := range outsides {
		r := newRig(t, model.MPLSoUDP, false, withPool(1024, 65535, false))
		var out [][]byte
		for _, f := range fragmentsOf(segment{at(a.workload, 40000), at(a.outside, 53), unix.IPPROTO_UDP, ""}.packetOf(t, string(make([]byte, 1300))), 5) {
			out = append(out, r.out(t, f))
		}
		if got, want := segmentOf(t, joined(out)), (segment{at(a.pool, 40000), at(a.outside, 53), unix.IPPROTO_UDP, ""}); got != want {
			t.Errorf("%s: sent %v, want %v", name, got, want)
		}
		var in [][]byte
		for _, f := range fragmentsOf(segment{at(a.outside, 53), at(a.pool, 40000), unix.IPPROTO_UDP, ""}.packetOf(t, string(make([]byte, 1300))), 6) {
			in = append(in, r.in(t, f))
		}
		if got, want := segmentOf(t, joined(in)), (segment{at(a.outside, 53), at(a.workload, 40000), unix.IPPROTO_UDP, ""}); got != want {
			t.Errorf("%s: answered %v, want %v", name, got, want)
		}
	}
}

// Errors about packets of a pool or of a floating address, in both directions, quote the packets as their senders know
// them. No address of the network is in an error that leaves.
func TestErrorsOfTheOutsideQuoteThePacketsAsTheirSendersKnowThem(t *testing.T) {
	router := map[string]netip.Addr{"IPv4": netip.MustParseAddr("192.0.2.1"), "IPv6": netip.MustParseAddr("2001:db8:9::1")}
	for name, a := range outsides {
		for _, floating := range []bool{false, true} {
			for _, policy := range []bool{false, true} {
				for _, protocol := range []uint8{unix.IPPROTO_UDP, unix.IPPROTO_TCP, unix.IPPROTO_ICMP} {
					what := fmt.Sprint(name, " floating ", floating, " policy ", policy, " protocol ", protocol)
					change, public := withPool(1024, 65535, policy), a.pool
					if floating {
						change, public = withFloating(policy), a.floating
					}
					r := newRig(t, model.MPLSoUDP, false, change)
					sent := segment{at(a.workload, 900), at(a.outside, 80), protocol, "S"}.packet(t)
					if protocol == unix.IPPROTO_ICMP {
						sent = echo(t, a.workload, a.outside, false, 900)
					}
					abroad := r.out(t, sent)
					port := uint16(0)
					answer := func(port uint16) []byte {
						if protocol == unix.IPPROTO_ICMP {
							return echo(t, a.outside, public, true, port)
						}
						return segment{at(a.outside, 80), at(public, port), protocol, "AS"}.packet(t)
					}
					if protocol == unix.IPPROTO_ICMP {
						_, _, port = idOf(t, abroad)
					} else {
						port = segmentOf(t, abroad).from.Port()
					}
					n := map[bool]int{true: 20, false: 40}[a.outside.Is4()] + 8
					checkError(t, what+" from a router", r.in(t, portUnreachable(t, router[name], public, abroad[:n])), router[name], a.workload, sent, true)
					checkError(t, what+" from outside", r.in(t, portUnreachable(t, a.outside, public, abroad)), a.outside, a.workload, sent, true)
					back := r.in(t, answer(port))
					checkError(t, what+" from the workload", r.out(t, portUnreachable(t, a.workload, a.outside, back)), public, a.outside, answer(port), true)
					checkError(t, what+" of the hop limit", r.in(t, withHops(answer(port), 1)), public, a.outside, withHops(answer(port), 1), false)
				}
			}
		}
	}
}

func TestAFloatingAddressIsReachedFromOutsideAndStays(t *testing.T) {
	for name, a := range outsides {
		for _, policy := range []bool{false, true} {
			r := newRig(t, model.MPLSoUDP, false, withFloating(policy))
			for _, protocol := range []uint8{unix.IPPROTO_TCP, unix.IPPROTO_UDP} {
				flags := [][2]string{{"S", "AS"}, {"A", "A"}, {"A", "A"}}
				if protocol == unix.IPPROTO_UDP {
					flags = make([][2]string, 3)
				}
				for _, f := range flags {
					got := segmentOf(t, r.in(t, segment{at(a.outside, 4000), at(a.floating, 80), protocol, f[0]}.packet(t)))
					if want := (segment{at(a.outside, 4000), at(a.workload, 80), protocol, f[0]}); got != want {
						t.Errorf("%s: arrived %v, want %v", name, got, want)
					}
					back := r.mappedOut(t, segment{at(a.workload, 80), at(a.outside, 4000), protocol, f[1]})
					if want := (segment{at(a.floating, 80), at(a.outside, 4000), protocol, f[1]}); back != want {
						t.Errorf("%s: answered %v, want %v", name, back, want)
					}
				}
				opened := r.mappedOut(t, segment{at(a.workload, 53), at(a.outside, 81), protocol, flags[0][0]})
				if want := (segment{at(a.floating, 53), at(a.outside, 81), protocol, flags[0][0]}); opened != want {
					t.Errorf("%s: opened %v, want %v", name, opened, want)
				}
			}
			if from, to, id := idOf(t, r.in(t, echo(t, a.outside, a.floating, false, 7))); from != a.outside || to != a.workload || id != 7 {
				t.Errorf("%s: ping from %s to %s, identifier %d", name, from, to, id)
			}
			if from, to, id := idOf(t, r.out(t, echo(t, a.workload, a.outside, true, 7))); from != a.floating || to != a.outside || id != 7 {
				t.Errorf("%s: pong from %s to %s, identifier %d", name, from, to, id)
			}
			other := r.mappedOut(t, segment{at(a.other, 5000), at(a.outside, 81), unix.IPPROTO_TCP, "S"})
			if other.from.Addr() != a.pool {
				t.Errorf("%s: another workload uses %s", name, other.from)
			}
			must.Succeed(t, r.Flows(func(k FlowKey, f Flow) bool {
				if k.Remote.Addr() == a.floating || k.Remote.Addr() == a.workload && !policy {
					t.Errorf("%s: a floating address has the flow %+v %+v", name, k, f)
				}
				return true
			}))
		}
	}
}

// A connection that began before the workload had a floating address keeps its address.
func TestAConnectionOutlivesTheArrivalOfAFloatingAddress(t *testing.T) {
	a := outsides["IPv4"]
	r := newRig(t, model.MPLSoUDP, false, withPool(1024, 65535, false))
	s := segment{at(a.workload, 40000), at(a.outside, 80), unix.IPPROTO_TCP, "S"}
	r.mappedOut(t, s)
	withFloating(false)(&r.tables)
	must.Get(r.Apply(r.tables))(t)
	s.flags = "A"
	if got := r.mappedOut(t, s); got.from != at(a.pool, 40000) {
		t.Errorf("the connection goes on from %s", got.from)
	}
	s.from = at(a.workload, 40001)
	s.flags = "S"
	if got := r.mappedOut(t, s); got.from != at(a.floating, 40001) {
		t.Errorf("the next connection is from %s", got.from)
	}
}

// withSharedPool is withPool, but another node has the ports from 33280 on. The other node's address in the network is that
// of workload b. It may send packets from outside the network.
func withSharedPool(policy bool) func(*fib.Tables) {
	return func(f *fib.Tables) {
		withPool(1024, 33279, policy)(f)
		f.Floatings = map[layout.FloatingKey]layout.Floating{}
		for _, a := range outsides {
			other, everything := addrB, netip.MustParsePrefix("0.0.0.0/0")
			if a.pool.Is6() {
				other, everything = addrB6, netip.MustParsePrefix("::/0")
			}
			f.Floatings[layout.FloatingKey{Vif: 2, Address: layout.AddressOf(a.pool), Port: 33280}] = layout.Floating{Other: layout.AddressOf(other)}
			f.Routes[fib.RouteKey{VRF: 1, Prefix: netip.PrefixFrom(a.pool, a.pool.BitLen())}] = layout.Route{Nexthop: nhOutside, Flags: layout.RouteFloating}
			f.Senders[layout.SenderOf(1, 1, everything)] = layout.Sender{Known: 1}
		}
	}
}

// Packets from outside for a port of another node go to this node unchanged, but for their hop limit. Policies do not judge
// them, and they make no flow.
func TestPacketsForAPortOfAnotherNodeGoToThatNode(t *testing.T) {
	router := map[string]netip.Addr{"IPv4": netip.MustParseAddr("192.0.2.1"), "IPv6": netip.MustParseAddr("2001:db8:9::1")}
	for name, a := range outsides {
		for _, policy := range []bool{false, true} {
			r := newRig(t, model.MPLSoUDP, false, withSharedPool(policy))
			abroad := segment{at(a.pool, 50000), at(a.outside, 53), unix.IPPROTO_UDP, ""}.packet(t)
			packets := map[string][]byte{
				"SYN":       segment{at(a.outside, 80), at(a.pool, 33280), unix.IPPROTO_TCP, "S"}.packet(t),
				"ACK":       segment{at(a.outside, 80), at(a.pool, 65535), unix.IPPROTO_TCP, "A"}.packet(t),
				"UDP":       segment{at(a.outside, 80), at(a.pool, 50000), unix.IPPROTO_UDP, ""}.packet(t),
				"SCTP":      segment{at(a.outside, 80), at(a.pool, 50000), unix.IPPROTO_SCTP, ""}.packet(t),
				"echo":      echo(t, a.outside, a.pool, true, 40000),
				"ICMP":      portUnreachable(t, router[name], a.pool, abroad),
				"of a ping": portUnreachable(t, router[name], a.pool, echo(t, a.pool, a.outside, false, 40000)),
			}
			for i, f := range fragmentsOf(segment{at(a.outside, 80), at(a.pool, 50000), unix.IPPROTO_UDP, ""}.packetOf(t, string(make([]byte, 1300))), 7) {
				packets[fmt.Sprint("fragment ", i)] = f
			}
			for _, what := range slices.Sorted(maps.Keys(packets)) { // the first fragment comes first
				sent := packets[what]
				got := r.in(t, sent)
				if inner := withHops(sent, 63); len(got) < len(inner) || !bytes.Equal(got[len(got)-len(inner):], inner) {
					t.Errorf("%s, %s: sent %x, want a tunnel packet with %x", name, what, got, inner)
				}
				if to, _ := netip.AddrFromSlice(got[16:20]); to != far {
					t.Errorf("%s, %s: sent to node %s, want %s", name, what, to, far)
				}
			}
			if flows := r.allFlows(t); len(flows) > 0 {
				t.Errorf("%s: packets for another node made flows: %+v", name, flows)
			}
			for what, b := range map[string][]byte{
				"an unused port of this node": segment{at(a.outside, 80), at(a.pool, 33279), unix.IPPROTO_UDP, ""}.packet(t),
				"a port of no node":           segment{at(a.outside, 80), at(a.pool, 1023), unix.IPPROTO_UDP, ""}.packet(t),
				"an unused identifier":        echo(t, a.outside, a.pool, true, 9),
			} {
				if _, reason := r.try(t, true, b); reason != "nat_unknown" {
					t.Errorf("%s, %s: the packet is dropped with the reason %q, want nat_unknown", name, what, reason)
				}
			}
		}
	}
}

// A packet from outside that another node sends enters the network like one from this node's kernel.
func TestPacketsFromOutsideEnterTheNetworkFromAnotherNode(t *testing.T) {
	for name, a := range outsides {
		for _, policy := range []bool{false, true} {
			for _, encap := range []model.Encapsulation{model.MPLSoUDP, model.VXLAN, model.MPLSoGRE, model.Direct} {
				r := newRig(t, cmp.Or(map[model.Encapsulation]model.Encapsulation{model.Direct: model.MPLSoUDP}[encap], encap), false, withSharedPool(policy))
				sent := r.mappedOut(t, segment{at(a.workload, 2000), at(a.outside, 53), unix.IPPROTO_UDP, ""})
				answer := segment{at(a.outside, 53), sent.from, unix.IPPROTO_UDP, ""}.packet(t)
				outer := frame(direct.Label(1, far), direct.Label(1, local), answer)
				switch encap {
				case model.Direct:
				case model.VXLAN:
					outer = wrapped(t, encap, false, labelOf(encap, false), 0, frame(macB, model.RouterMAC, answer))
				default:
					outer = wrapped(t, encap, false, labelOf(encap, false), 0, answer)
				}
				code, entered := r.run(t, r.programs.FabricTc, r.fabric, outer)
				if want := frame(model.MAC{2, 0, 0, 0, 0, 0xc}, model.RouterMAC, answer); code != actRedirect || !bytes.Equal(entered, want) {
					t.Fatalf("%s by %s: action %d, frame %x, want %x at the vif of the node", name, encap, int32(code), entered, want)
				}
				got := segmentOf(t, r.in(t, entered[14:]))
				if want := (segment{at(a.outside, 53), at(a.workload, 2000), unix.IPPROTO_UDP, ""}); got != want {
					t.Errorf("%s by %s: arrived %v, want %v", name, encap, got, want)
				}
				delete(r.tables.Senders, layout.SenderOf(1, 1, netip.PrefixFrom(map[bool]netip.Addr{true: netip.IPv4Unspecified(), false: netip.IPv6Unspecified()}[a.pool.Is4()], 0)))
				_, err := r.Apply(r.tables)
				must.Succeed(t, err)
				before, err := r.Drops()
				must.Succeed(t, err)
				if code, _ := r.run(t, r.programs.FabricTc, r.fabric, outer); code != actShot || r.drop(t, before) != "forged_source" {
					t.Errorf("%s by %s: from a node without a share: action %d, want a drop (forged_source)", name, encap, int32(code))
				}
			}
		}
	}
}

// A trace translates the packet as the data path does, and begins no flow.
func TestATraceOfAPacketToTheOutsideShowsTheAddressOfThePool(t *testing.T) {
	for name, a := range outsides {
		for kind, c := range map[string]struct {
			tables func(*fib.Tables)
			source netip.Addr
		}{"the node's": {withPool(1024, 65535, false), a.pool}, "floating": {withFloating(false), a.floating}} {
			t.Run(name+" "+kind, func(t *testing.T) {
				r := newRig(t, model.MPLSoUDP, false, c.tables)
				s := segment{from: netip.AddrPortFrom(a.workload, 5000), to: netip.AddrPortFrom(a.outside, 53), protocol: unix.IPPROTO_UDP}
				steps, code := r.trace(t, r.vif, frame(macA, model.RouterMAC, s.packet(t)))
				at := slices.IndexFunc(steps, func(s TraceStep) bool { return s.Kind == TraceNAT })
				if at < 0 || steps[at].Address != c.source || code != actRedirect {
					t.Errorf("the trace ends with action %d and has the steps %+v; want a step that translates the source to %s", code, steps, c.source)
				}
				flows := 0
				must.Succeed(t, r.Flows(func(FlowKey, Flow) bool { flows++; return true }))
				must.Equal(t, 0, flows)
			})
		}
	}
}
