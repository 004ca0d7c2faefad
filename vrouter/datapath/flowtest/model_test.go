package flowtest

import (
	"math/rand/v2"
	"net/netip"
	"testing"
)

// question is a packet in the words of the model.
type question struct {
	d               direction
	protocol        uint8
	local, remote   netip.AddrPort
	hasPorts        bool
	destinationPort uint16
	cut             bool // the IP length ends in the transport header
}

// allows is what a policy means, told without masks, flags or maps.
func (p policy) allows(q question) bool {
	for _, r := range p.rules {
		switch {
		case r.egress != (q.d == fromWorkload):
		case r.protocol != 0 && r.protocol != q.protocol:
		case r.remote.IsValid() && !r.remote.Contains(q.remote.Addr()):
		case (r.first != 0 || (r.last != 0 && r.last != 65535)) && (!q.hasPorts || q.destinationPort < r.first || q.destinationPort > r.last):
		default:
			return r.allow
		}
	}
	if q.d == fromWorkload {
		return p.allowOut
	}
	return p.allowIn
}

// Few of everything, so that rules and packets meet often.
var (
	somePorts    = []uint16{1, 22, 53, 80, 443, 1024, 8080, 65535}
	someRemotes  = []string{"10.1.2.3", "10.1.2.4", "10.1.200.1", "192.0.2.255", "2001:db8::1", "2001:db8:1::1", "2001:db8:1:ffff::1", "fd00::9"}
	someProtocol = []uint8{1, 6, 17, 47, 58, 132}
)

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

func randomRule(r *rand.Rand) rule {
	u := rule{egress: r.IntN(2) == 0, allow: r.IntN(2) == 0, log: r.IntN(2) == 0}
	if r.IntN(3) > 0 {
		u.protocol = pick(r, someProtocol)
	}
	if r.IntN(3) > 0 {
		a := netip.MustParseAddr(pick(r, someRemotes))
		u.remote = netip.PrefixFrom(a, r.IntN(a.BitLen()+1)).Masked()
	}
	switch r.IntN(4) {
	case 0:
		u.first = pick(r, somePorts)
		u.last = u.first
	case 1:
		a, b := pick(r, somePorts), pick(r, somePorts)
		u.first, u.last = min(a, b), max(a, b)
	case 2:
		u.last = 65535
	}
	return u
}

func randomPolicy(r *rand.Rand, generation uint32) policy {
	p := policy{generation: generation, allowIn: r.IntN(2) == 0, allowOut: r.IntN(2) == 0}
	n := r.IntN(8)
	if r.IntN(10) == 0 {
		n = r.IntN(65)
	}
	for range n {
		p.rules = append(p.rules, randomRule(r))
	}
	return p
}

// randomPacket makes a question, and the frame that asks it.
func randomPacket(r *rand.Rand) (question, []byte) {
	q := question{d: direction(r.IntN(2)), protocol: pick(r, someProtocol)}
	remote := netip.MustParseAddr(pick(r, someRemotes))
	local := local4.Addr()
	if remote.Is6() {
		local = local6.Addr()
	}
	q.local = netip.AddrPortFrom(local, pick(r, somePorts))
	q.remote = netip.AddrPortFrom(remote, pick(r, somePorts))
	source, destination := q.local, q.remote
	if q.d == toWorkload {
		source, destination = destination, source
	}
	q.destinationPort = destination.Port()
	switch q.protocol {
	case 6:
		q.hasPorts = true
		return q, tcp(source, destination, "S")
	case 17:
		q.hasPorts = true
		return q, udp(source, destination, r.IntN(20))
	case 132:
		q.hasPorts = true
		return q, raw(source.Addr(), destination.Addr(), 132, []byte{byte(source.Port() >> 8), byte(source.Port()),
			byte(destination.Port() >> 8), byte(destination.Port()), 0, 0, 0, 0})
	case 1, 58:
		kind := uint8(8)
		q.protocol = 1
		if remote.Is6() {
			kind, q.protocol = 128, 58
		}
		return q, icmp(source.Addr(), destination.Addr(), kind, source.Port())
	}
	return q, raw(source.Addr(), destination.Addr(), q.protocol, make([]byte, 8))
}

// padded adds padding to some frames. Of others it reduces the IP length, so that headers become
// padding.
func padded(r *rand.Rand, q question, frame []byte) (question, []byte) {
	switch r.IntN(8) {
	case 0:
		return q, append(frame, make([]byte, r.IntN(40))...)
	case 1:
		header := 34
		if q.local.Addr().Is6() {
			header = 54
		}
		if q.hasPorts || q.protocol == 1 || q.protocol == 58 {
			q.cut = true
			return q, shortened(frame, r.IntN(min(8, len(frame)-header)))
		}
	}
	return q, frame
}

func TestVerdictsEqualTheModelsOverRandomPoliciesAndPackets(t *testing.T) {
	const policies, packets = 3000, 8
	h := load(t, flowLimit(8)) // a small table is quickly emptied
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	counts := map[int32]int{}
	for g := range uint32(policies) {
		p := randomPolicy(r, g+1)
		h.apply(p)
		for range packets {
			h.forget()
			q, frame := randomPacket(r)
			q, frame = padded(r, q, frame)
			want := denied
			switch {
			case q.cut:
				want = malformed
			case p.allows(q):
				want = admitted
			}
			if got := h.admit(q.d, frame); got != want {
				t.Fatalf("seed %d: packet %+v, policy %+v: verdict %d, the model's %d", seed, q, p, got, want)
			}
			counts[want]++
		}
	}
	if least := policies * packets / 5; counts[admitted] < least || counts[denied] < least {
		t.Errorf("verdicts %v are too one-sided to prove anything: want at least %d of each", counts, least)
	}
}

// flowModel is what a table of flows means: who may send, by UDP's rules.
type flowModel struct {
	policy policy
	flows  map[netip.AddrPort]*modelFlow // by remote end
}

type modelFlow struct {
	begun      direction
	allowed    bool
	generation uint32
	packets    [2]uint64
}

func (m *flowModel) pass(q question) bool {
	f := m.flows[q.remote]
	switch {
	case f == nil && !m.policy.allows(q):
		return false // without a flow
	case f == nil || (!f.allowed && f.begun != q.d):
		f = &modelFlow{begun: q.d, allowed: m.policy.allows(q), generation: m.policy.generation}
		m.flows[q.remote] = f
	case f.generation != m.policy.generation:
		first := q
		if first.d = f.begun; first.d == fromWorkload {
			first.destinationPort = q.remote.Port()
		} else {
			first.destinationPort = q.local.Port()
		}
		f.allowed, f.generation = m.policy.allows(first), m.policy.generation
	}
	f.packets[q.d]++
	return f.allowed
}

func TestTheTableEqualsTheModelOverRandomTraffic(t *testing.T) {
	const rounds, packets = 60, 150
	h := load(t)
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	m := flowModel{flows: map[netip.AddrPort]*modelFlow{}}
	for g := range uint32(rounds) {
		m.policy = randomPolicy(r, g+1)
		h.apply(m.policy)
		for range packets {
			q := question{d: direction(r.IntN(2)), protocol: 17, hasPorts: true, local: local4,
				remote: netip.AddrPortFrom(netip.MustParseAddr(pick(r, someRemotes[:4])), pick(r, somePorts))}
			frame := udp(q.local, q.remote, 1)
			q.destinationPort = q.remote.Port()
			if q.d == toWorkload {
				frame = udp(q.remote, q.local, 1)
				q.destinationPort = q.local.Port()
			}
			want := denied
			if m.pass(q) {
				want = admitted
			}
			if got := h.admit(q.d, frame); got != want {
				t.Fatalf("seed %d, round %d: packet %+v: verdict %d, the model's %d", seed, g, q, got, want)
			}
		}
		for remote, f := range m.flows {
			e := h.flow(flowKey(17, local4, remote))
			if e.Packets != f.packets || (e.Action == flowForward) != f.allowed || direction(e.Reply) != f.begun {
				t.Fatalf("seed %d, round %d: flow with %v is %+v, the model's %+v", seed, g, remote, e, *f)
			}
		}
		if n := h.count(h.Flows); n != len(m.flows) {
			t.Fatalf("seed %d, round %d: %d flows, the model has %d", seed, g, n, len(m.flows))
		}
	}
}
