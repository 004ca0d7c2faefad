package datapath

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
	"windtunnel/vrouter/service"
)

var (
	clusterIP  = netip.MustParseAddr("10.96.0.10")
	clusterIP6 = netip.MustParseAddr("fd96::10")
)

// withServices lets the workloads of the scene reach services.
func withServices(f *fib.Tables) {
	for device, v := range f.Vifs {
		v.Flags |= layout.VifServices
		f.Vifs[device] = v
	}
}

// withServicesAnd lets the workloads reach services. With a policy, workload a may only open flows to a backend.
func withServicesAnd(policy bool, backend netip.AddrPort) func(*fib.Tables) {
	return func(f *fib.Tables) {
		withServices(f)
		if policy {
			withRules(0)(f)
			to := layout.Rule{Flags: layout.RuleEgress | layout.RuleAllow, FirstPort: backend.Port(), LastPort: backend.Port()}
			f.Policies[1] = fib.Policy{Rules: []layout.Rule{to.With(netip.PrefixFrom(backend.Addr(), backend.Addr().BitLen()))}}
		}
	}
}

// segment is a packet of a workload or a backend.
type segment struct {
	from, to netip.AddrPort
	protocol uint8
	flags    string // TCP: letters of S, A, F, R
}

func (s segment) String() string {
	return fmt.Sprintf("%s to %s, protocol %d %s", s.from, s.to, s.protocol, s.flags)
}

func (s segment) packet(t testing.TB) []byte { return s.packetOf(t, "data.") }

func (s segment) packetOf(t testing.TB, data string) []byte {
	var network gopacket.NetworkLayer
	var head gopacket.SerializableLayer
	ip4 := &layers.IPv4{Version: 4, TTL: 64, Id: 7, Protocol: layers.IPProtocol(s.protocol), SrcIP: s.from.Addr().AsSlice(), DstIP: s.to.Addr().AsSlice(), Flags: layers.IPv4DontFragment}
	ip6 := &layers.IPv6{Version: 6, HopLimit: 64, NextHeader: layers.IPProtocol(s.protocol), SrcIP: s.from.Addr().AsSlice(), DstIP: s.to.Addr().AsSlice()}
	if network, head = ip4, ip4; s.from.Addr().Is6() {
		network, head = ip6, ip6
	}
	if s.protocol == unix.IPPROTO_UDP {
		udp := &layers.UDP{SrcPort: layers.UDPPort(s.from.Port()), DstPort: layers.UDPPort(s.to.Port())}
		udp.SetNetworkLayerForChecksum(network)
		return serialize(t, head, udp, gopacket.Payload(data))
	}
	if s.protocol == unix.IPPROTO_SCTP {
		return serialize(t, head, &layers.SCTP{SrcPort: layers.SCTPPort(s.from.Port()), DstPort: layers.SCTPPort(s.to.Port()), VerificationTag: 7}, gopacket.Payload(data))
	}
	has := func(f rune) bool { return slices.Contains([]rune(s.flags), f) }
	tcp := &layers.TCP{SrcPort: layers.TCPPort(s.from.Port()), DstPort: layers.TCPPort(s.to.Port()), SYN: has('S'), ACK: has('A'), FIN: has('F'), RST: has('R'), Window: 100}
	tcp.SetNetworkLayerForChecksum(network)
	return serialize(t, head, tcp, gopacket.Payload(data))
}

// segmentOf returns the headers of a packet. The test fails if one of its checksums is wrong.
func segmentOf(t testing.TB, ip []byte) (s segment) {
	t.Helper()
	if !checksumIsRight(ip) || ip[0]>>4 == 4 && sum16(ip[:20]) != 0xffff {
		t.Errorf("a checksum of %x is wrong", ip)
	}
	at := 20
	from, to := ip[12:16], ip[16:20]
	s.protocol = ip[9]
	if ip[0]>>4 == 6 {
		at, from, to, s.protocol = 40, ip[8:24], ip[24:40], ip[6]
	}
	a, _ := netip.AddrFromSlice(from)
	b, _ := netip.AddrFromSlice(to)
	s.from, s.to = netip.AddrPortFrom(a, binary.BigEndian.Uint16(ip[at:])), netip.AddrPortFrom(b, binary.BigEndian.Uint16(ip[at+2:]))
	if s.protocol == unix.IPPROTO_TCP {
		for i, f := range "FSR A" {
			if ip[at+13]>>i&1 != 0 && f != ' ' {
				s.flags = string(f) + s.flags
			}
		}
	}
	return s
}

// setService gives a service of port 80 the backends, for TCP, UDP and SCTP.
func (r *rig) setService(t testing.TB, address netip.Addr, backends ...netip.AddrPort) {
	t.Helper()
	var all []service.Service
	for _, protocol := range []uint8{unix.IPPROTO_TCP, unix.IPPROTO_UDP, unix.IPPROTO_SCTP} {
		all = append(all, serviceAt(address, 80, protocol, backends...))
	}
	r.setServices(t, all...)
}

func (r *rig) setServices(t testing.TB, all ...service.Service) {
	t.Helper()
	must.Get(r.SetServices(all))(t)
}

// leave sends an IP packet from workload a, and returns the packet that leaves the node.
func (r *rig) leave(t *testing.T, ip []byte) []byte {
	t.Helper()
	before, _ := r.Drops()
	code, out := r.run(t, r.programs.FromWorkload, r.vif, frame(macA, model.RouterMAC, ip))
	if code != actRedirect {
		t.Fatalf("%x: action %d, drop reason %s", ip, code, r.drop(t, before))
	}
	_, inner, _ := outerOf(t, model.MPLSoUDP, false, out)
	return inner
}

// arrive gives the node an IP packet of another node, and returns the packet that workload a gets.
func (r *rig) arrive(t *testing.T, ip []byte) []byte {
	t.Helper()
	before, _ := r.Drops()
	code, out := r.run(t, r.programs.FabricTc, r.fabric, wrapped(t, model.MPLSoUDP, false, 18, 0, ip))
	if code != actRedirect {
		t.Fatalf("%x: action %d, drop reason %s", ip, code, r.drop(t, before))
	}
	return out[14:]
}

// toBackend sends a packet from workload a, and returns the packet that leaves the node.
func (r *rig) toBackend(t *testing.T, s segment) segment {
	t.Helper()
	return segmentOf(t, r.leave(t, s.packet(t)))
}

// answered gives the node a packet of a backend on another node, and returns the packet that workload a gets.
func (r *rig) answered(t *testing.T, s segment) segment {
	t.Helper()
	return segmentOf(t, r.arrive(t, s.packet(t)))
}

func at(a netip.Addr, port uint16) netip.AddrPort { return netip.AddrPortFrom(a, port) }

func serviceAt(address netip.Addr, port uint16, protocol uint8, backends ...netip.AddrPort) service.Service {
	return service.Service{Key: service.Key{Address: address, Port: port, Protocol: protocol}, Backends: backends}
}

// families are the addresses of a test for IPv4 and IPv6.
var families = map[string]struct{ client, service, backend, other netip.Addr }{
	"IPv4": {addrA, clusterIP, addrB, netip.MustParseAddr("10.9.0.1")},
	"IPv6": {addrA6, clusterIP6, addrB6, netip.MustParseAddr("fd00:9::1")},
}

func TestAConnectionToAServiceReachesItsBackendAndTheAnswersHaveTheServicesAddress(t *testing.T) {
	for name, a := range families {
		for _, port := range []uint16{80, 8080} {
			for _, policy := range []bool{false, true} {
				t.Run(fmt.Sprint(name, " port ", port, " policy ", policy), func(t *testing.T) {
					r := newRig(t, model.MPLSoUDP, false, withServicesAnd(policy, at(a.backend, port)))
					r.setService(t, a.service, at(a.backend, port))
					for protocol, flags := range map[uint8][][2]string{
						unix.IPPROTO_UDP: {{"", ""}, {"", ""}, {"", ""}},
						unix.IPPROTO_TCP: {{"S", "AS"}, {"A", "A"}, {"A", "A"}, {"AF", "AF"}, {"A", "A"}},
					} {
						client := at(a.client, 40000)
						for _, f := range flags {
							sent := r.toBackend(t, segment{client, at(a.service, 80), protocol, f[0]})
							if want := (segment{client, at(a.backend, port), protocol, f[0]}); sent != want {
								t.Errorf("sent %v, want %v", sent, want)
							}
							got := r.answered(t, segment{at(a.backend, port), client, protocol, f[1]})
							if want := (segment{at(a.service, 80), client, protocol, f[1]}); got != want {
								t.Errorf("answered %v, want %v", got, want)
							}
						}
					}
				})
			}
		}
	}
}

// After a connection to a service has ended, the workload can connect to the backend itself, from the same port.
func TestAWorkloadConnectsToABackendAfterItsConnectionToTheService(t *testing.T) {
	for name, a := range families {
		for _, policy := range []bool{false, true} {
			r := newRig(t, model.MPLSoUDP, false, func(f *fib.Tables) {
				withServices(f)
				if policy {
					withRules(0)(f)
					f.Policies[1] = fib.Policy{AllowIn: true, AllowOut: true}
				}
			})
			r.setServices(t, serviceAt(a.service, 80, unix.IPPROTO_TCP, at(a.backend, 8080)))
			for _, to := range []netip.AddrPort{at(a.service, 80), at(a.backend, 8080)} {
				for _, f := range [][2]string{{"S", "AS"}, {"A", "A"}, {"AF", "AF"}, {"A", "A"}} {
					r.toBackend(t, segment{at(a.client, 40000), to, unix.IPPROTO_TCP, f[0]})
					got := r.answered(t, segment{at(a.backend, 8080), at(a.client, 40000), unix.IPPROTO_TCP, f[1]})
					if want := (segment{to, at(a.client, 40000), unix.IPPROTO_TCP, f[1]}); got != want {
						t.Errorf("%s, policy %v: answered %v, want %v", name, policy, got, want)
					}
				}
			}
		}
	}
}

// A workload has a connection to the address of a pod. It then connects, from the same local port, to a service whose
// backend is this pod. The first connection must go on, and the second opens once the first has ended. With TCP Fast Open
// (RFC 7413) the pod may send data before the handshake is complete.
func TestAConnectionToABackendOutlivesAnAttemptToConnectToItsService(t *testing.T) {
	for name, a := range families {
		r := newRig(t, model.MPLSoUDP, false, withServices)
		backend, client := at(a.backend, 8080), at(a.client, 40000)
		r.setServices(t, serviceAt(a.service, 80, unix.IPPROTO_TCP, backend))
		step := func(to netip.AddrPort, sent, answer string, from netip.AddrPort) {
			t.Helper()
			r.toBackend(t, segment{client, to, unix.IPPROTO_TCP, sent})
			want := segment{from, client, unix.IPPROTO_TCP, answer}
			if got := r.answered(t, segment{backend, client, unix.IPPROTO_TCP, answer}); got != want {
				t.Errorf("%s, %s to %v: answered %v, want %v", name, sent, to, got, want)
			}
		}
		step(backend, "S", "AS", backend)
		step(backend, "A", "A", backend)
		step(at(a.service, 80), "S", "A", backend) // RFC 5961, section 4
		step(backend, "A", "A", backend)
		step(at(a.service, 80), "S", "AF", backend)
		step(backend, "AF", "A", backend)
		step(at(a.service, 80), "S", "AS", at(a.service, 80))
		if got, want := r.answered(t, segment{backend, client, unix.IPPROTO_TCP, "A"}), (segment{at(a.service, 80), client, unix.IPPROTO_TCP, "A"}); got != want {
			t.Errorf("%s: the data before the end of the handshake became %v, want %v", name, got, want)
		}
		step(at(a.service, 80), "A", "A", at(a.service, 80))
		step(at(a.service, 80), "AF", "AF", at(a.service, 80))
	}
}

func TestOtherPacketsStayAsTheyAre(t *testing.T) {
	r := newRig(t, model.MPLSoUDP, false, withServices)
	r.setServices(t, serviceAt(clusterIP, 80, unix.IPPROTO_TCP, at(addrB, 80)), serviceAt(netip.MustParseAddr("10.9.0.200"), 80, unix.IPPROTO_TCP, at(addrB, 80)))
	for name, s := range map[string]segment{
		"to a workload":              {at(addrA, 1), at(addrB, 80), unix.IPPROTO_TCP, "S"},
		"to another port":            {at(addrA, 2), at(netip.MustParseAddr("10.9.0.200"), 81), unix.IPPROTO_TCP, "S"},
		"of another protocol":        {at(addrA, 3), at(netip.MustParseAddr("10.9.0.200"), 80), unix.IPPROTO_UDP, ""},
		"of a connection of earlier": {at(addrA, 4), at(netip.MustParseAddr("10.9.0.200"), 80), unix.IPPROTO_TCP, "A"},
	} {
		if got := r.toBackend(t, s); got != s {
			t.Errorf("%s: %v became %v", name, s, got)
		}
		back := segment{at(addrB, 80), s.from, s.protocol, s.flags}
		if got := r.answered(t, back); got != back {
			t.Errorf("%s: the answer %v became %v", name, back, got)
		}
	}
}

func TestAServiceWithoutABackendIsRejected(t *testing.T) {
	for name, a := range families {
		for _, silent := range []bool{false, true} {
			r := newRig(t, model.MPLSoUDP, false, withServices)
			s := serviceAt(a.service, 80, unix.IPPROTO_TCP)
			s.Drop = silent
			r.setServices(t, s)
			before, _ := r.Drops()
			code, out := r.run(t, r.programs.FromWorkload, r.vif, frame(macA, model.RouterMAC, segment{at(a.client, 40000), at(a.service, 80), unix.IPPROTO_TCP, "S"}.packet(t)))
			if reason := r.drop(t, before); reason != "no_backend" {
				t.Errorf("%s: drop reason %s", name, reason)
			}
			if silent {
				if code != actShot {
					t.Errorf("%s: action %d, want a drop", name, code)
				}
				continue
			}
			p := gopacket.NewPacket(out, layers.LayerTypeEthernet, gopacket.Default)
			v4, _ := p.Layer(layers.LayerTypeICMPv4).(*layers.ICMPv4)
			v6, _ := p.Layer(layers.LayerTypeICMPv6).(*layers.ICMPv6)
			if code != actRedirect || (v4 == nil || v4.TypeCode.Code() != layers.ICMPv4CodePort) && (v6 == nil || v6.TypeCode.Code() != layers.ICMPv6CodePortUnreachable) {
				t.Errorf("%s: action %d, answer %v, want port unreachable", name, code, p)
			}
		}
	}
}

func TestAWorkloadReachesItself(t *testing.T) {
	for name, a := range families {
		for _, policy := range []bool{false, true} {
			r := newRig(t, model.MPLSoUDP, false, func(f *fib.Tables) {
				withServices(f)
				if policy {
					withRules(1)(f) // to other addresses only: no policy closes a workload to itself
				}
			})
			r.setServices(t, serviceAt(a.service, 80, unix.IPPROTO_TCP, at(a.client, 8080)))
			loop := func(s, want segment) {
				t.Helper()
				code, out := r.run(t, r.programs.FromWorkload, r.vif, frame(macA, model.RouterMAC, s.packet(t)))
				if code != actRedirect || !slices.Equal(out[:12], append(macA[:], model.RouterMAC[:]...)) {
					t.Fatalf("%s: %v: action %d, frame %x", name, s, code, out)
				}
				if got := segmentOf(t, out[14:]); got != want {
					t.Errorf("%s: %v became %v, want %v", name, s, got, want)
				}
			}
			for _, f := range []struct{ flags, answer string }{{"S", "AS"}, {"A", "A"}, {"A", "A"}, {"AF", "AF"}} {
				loop(segment{at(a.client, 40000), at(a.service, 80), unix.IPPROTO_TCP, f.flags}, segment{at(a.service, 40000), at(a.client, 8080), unix.IPPROTO_TCP, f.flags})
				loop(segment{at(a.client, 8080), at(a.service, 40000), unix.IPPROTO_TCP, f.answer}, segment{at(a.service, 80), at(a.client, 40000), unix.IPPROTO_TCP, f.answer})
			}
		}
	}
}

// When a service changes, TCP connections keep their backend. Other flows get another backend if theirs is deleted.
func TestOnlyUDPLeavesADeletedBackend(t *testing.T) {
	a := families["IPv4"]
	r := newRig(t, model.MPLSoUDP, false, withServices)
	set := func(backends ...netip.AddrPort) { t.Helper(); r.setService(t, a.service, backends...) }
	send := func(protocol uint8, flags string) netip.Addr {
		t.Helper()
		return r.toBackend(t, segment{at(a.client, 40000), at(a.service, 80), protocol, flags}).to.Addr()
	}
	set(at(a.backend, 80))
	send(unix.IPPROTO_TCP, "S")
	send(unix.IPPROTO_TCP, "A")
	send(unix.IPPROTO_UDP, "")
	set(at(a.other, 80))
	r.ageFlows(t, 0)
	if to := send(unix.IPPROTO_TCP, "A"); to != a.backend {
		t.Errorf("the TCP connection goes to %s", to)
	}
	if to := send(unix.IPPROTO_UDP, ""); to != a.other {
		t.Errorf("the UDP flow goes to %s", to)
	}
	set(at(a.backend, 80), at(a.other, 80))
	r.ageFlows(t, 0)
	if to := send(unix.IPPROTO_UDP, ""); to != a.other {
		t.Errorf("the UDP flow goes to %s although its backend is there", to)
	}
}

// ageFlows sets back the time of the last packet of all flows, at least so far that the next packet renews it.
func (r *rig) ageFlows(t *testing.T, by time.Duration) {
	t.Helper()
	flows := table[layout.FlowKey, layout.Flow]{"flows", r.maps.Flows, false}
	all := map[layout.FlowKey]layout.Flow{}
	must.Succeed(t, flows.each(func(k layout.FlowKey, v layout.Flow) { all[k] = v }))
	for k, v := range all {
		v.SeenTick -= 100
		v.SeenNs -= min(v.SeenNs, uint64(by))
		must.Succeed(t, r.maps.Flows.Put(k, v))
	}
}

// A flow keeps its backend, and new flows choose among all of them. With affinity, all flows of a client have
// the same one.
func TestFlowsSpreadUnlessTheServiceHasAffinity(t *testing.T) {
	a := families["IPv4"]
	for affinity, want := range map[time.Duration]int{0: 4, time.Hour: 1} {
		r := newRig(t, model.MPLSoUDP, false, withServices)
		s := serviceAt(a.service, 80, unix.IPPROTO_UDP)
		s.Affinity = affinity
		for i := range 4 {
			s.Backends = append(s.Backends, at(netip.AddrFrom4([4]byte{10, 9, 0, byte(i)}), 80))
		}
		r.setServices(t, s)
		seen := map[netip.AddrPort]bool{}
		for port := range uint16(100) {
			packet := segment{at(a.client, 40000+port), at(a.service, 80), unix.IPPROTO_UDP, ""}
			to := r.toBackend(t, packet).to
			if again := r.toBackend(t, packet).to; again != to {
				t.Fatalf("a flow to %s continued to %s", to, again)
			}
			seen[to] = true
		}
		if len(seen) != want {
			t.Errorf("affinity %s: %d backends, want %d", affinity, len(seen), want)
		}
	}
}

// If two services have one backend, the backend could not tell apart two connections from one port of a client.
func TestTwoServicesDoNotShareABackendForOnePort(t *testing.T) {
	r := newRig(t, model.MPLSoUDP, false, withServices)
	other := netip.MustParseAddr("10.96.0.11")
	r.setServices(t, serviceAt(clusterIP, 80, unix.IPPROTO_TCP, at(addrB, 80)), serviceAt(other, 80, unix.IPPROTO_TCP, at(addrB, 80)))
	r.toBackend(t, segment{at(addrA, 40000), at(clusterIP, 80), unix.IPPROTO_TCP, "S"})
	before, _ := r.Drops()
	r.run(t, r.programs.FromWorkload, r.vif, frame(macA, model.RouterMAC, segment{at(addrA, 40000), at(other, 80), unix.IPPROTO_TCP, "S"}.packet(t)))
	must.Equal(t, "service_clash", r.drop(t, before))
	r.setServices(t, serviceAt(other, 80, unix.IPPROTO_TCP, at(addrB, 80), at(netip.MustParseAddr("10.9.0.1"), 80)))
	for range 5 { // at least one of four tries finds the other backend, except once in 16 times
		code, _ := r.run(t, r.programs.FromWorkload, r.vif, frame(macA, model.RouterMAC, segment{at(addrA, 40000), at(other, 80), unix.IPPROTO_TCP, "S"}.packet(t)))
		if code == actRedirect {
			return
		}
	}
	t.Error("no flow went to the backend without a clash, want at least one")
}

// SetServices writes only the services that change, also if another process has written the present ones.
func TestAChangeOfAServiceWritesOnlyItsEntries(t *testing.T) {
	d := shared(t)
	all := []service.Service{
		serviceAt(clusterIP, 80, unix.IPPROTO_TCP, at(addrB, 80), at(addrC, 80)), serviceAt(clusterIP, 53, unix.IPPROTO_UDP, at(addrB, 53)),
		serviceAt(clusterIP6, 80, unix.IPPROTO_TCP, at(addrB6, 80)), serviceAt(netip.MustParseAddr("10.96.0.200"), 80, unix.IPPROTO_SCTP),
	}
	all[1].Affinity, all[3].Drop = 3*time.Hour, true
	slices.SortFunc(all, func(a, b service.Service) int { return a.Key.Compare(b.Key) })
	set := func(want Changes) {
		t.Helper()
		got, err := d.SetServices(all)
		if err != nil || got != want {
			t.Errorf("%+v %v, want %+v", got, err, want)
		}
		have := must.Get(d.Services())(t)
		must.Equal(t, all, have, cmpopts.EquateComparable(netip.Addr{}, netip.AddrPort{}), cmpopts.EquateEmpty())
	}
	set(Changes{Updated: 4 + 4 + 2})
	set(Changes{})
	d.services.written = nil
	set(Changes{})
	i := slices.IndexFunc(all, func(s service.Service) bool { return len(s.Backends) == 2 })
	all[i].Backends = all[i].Backends[1:]
	set(Changes{Updated: 2, Deleted: 1})
	all = slices.Delete(all, i, i+1)
	set(Changes{Deleted: 2})
}

// A change of one of 5,000 services with 20,000 backends, and the memory that they take.
func BenchmarkAChangeOfAService(b *testing.B) {
	d := open(b, Options{Pins: pins(b)})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var all []service.Service
	for i := range 5000 {
		s := serviceAt(netip.AddrFrom4([4]byte{10, 96, byte(i >> 8), byte(i)}), 80, unix.IPPROTO_TCP)
		for j := range 4 {
			s.Backends = append(s.Backends, at(netip.AddrFrom4([4]byte{10, byte(128 + j), byte(i >> 8), byte(i)}), 8080))
		}
		all = append(all, s)
	}
	if _, err := d.SetServices(all); err != nil {
		b.Fatal(err)
	}
	n := uint16(0)
	for b.Loop() {
		n++
		all[7].Backends[2] = at(addrB, n)
		if c, err := d.SetServices(all); err != nil || c != (Changes{Updated: 2}) {
			b.Fatal(c, err)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/1e6, "MB")
}
