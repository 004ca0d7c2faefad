package datapath

import (
	"math/rand/v2"
	"net/netip"
	"os"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
)

// packetsOfFuzz is how many packets the fuzz of the programs sends, unless
// VROUTER_FUZZ_PACKETS says otherwise; `make bench` sends ten million.
const packetsOfFuzz = 100_000

func fuzzPackets(t *testing.T) int {
	t.Helper()
	s := os.Getenv("VROUTER_FUZZ_PACKETS")
	if s == "" {
		return must.Rounds(packetsOfFuzz)
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatalf("VROUTER_FUZZ_PACKETS: %v", err)
	}
	return n
}

// Random and mutated packets: each is forwarded, answered, replicated, passed
// on, or dropped under a reason; the sums agree; nothing crashes, and nothing
// leaves by a device that is not ours.
func TestEveryPacketHasOneEnd(t *testing.T) {
	n := fuzzPackets(t)
	r := newRig(t, model.MPLSoUDP, false, func(f *fib.Tables) {
		withServices(f)
		for i, vif := range f.Vifs {
			vif.Flags |= layout.If[uint16](vif.ID == 1, layout.VifPolicy)
			f.Vifs[i] = vif
		}
		f.Policies[1] = fib.Policy{AllowIn: true, AllowOut: true, Rules: []layout.Rule{{Protocol: 17, FirstPort: 53, LastPort: 53}}}
	})
	for _, a := range families {
		r.setService(t, a.service, at(a.backend, 80), at(a.client, 80))
	}
	random := rand.New(rand.NewPCG(uint64(os.Getpid()), 42))
	seeds := append(fuzzSeeds(t), serviceSeeds(t)...)
	skipped := 0
	for i := range n {
		b := mutate(random, seeds)
		if i%2 == 0 {
			code, _ := r.run(t, r.programs.FromWorkload, r.vif, b)
			if code == notRun {
				skipped++
			} else if code != actRedirect && code != actShot {
				t.Fatalf("from a workload: action %d for %x", int32(code), b)
			}
			continue
		}
		if code, _, out := r.xdp(t, b); code != xdpPass || len(out) > len(b) {
			t.Fatalf("XDP: action %d, %d bytes of %d for %x", code, len(out), len(b), b)
		}
		code, _ := r.run(t, r.programs.FabricTc, r.fabric, b)
		if code == notRun {
			skipped++
		} else if code != actShot && code != actRedirect && code != actUnspec {
			t.Fatalf("from the fabric: action %d for %x", int32(code), b)
		}
	}
	checkSums(t, r, uint64(n-skipped))
}

func checkSums(t *testing.T, r *rig, n uint64) {
	t.Helper()
	o := must.Get(r.Outcomes())(t)
	t.Logf("%+v", o)
	if ends := o.Passed + o.Forwarded + o.Answered + o.Replicated + o.Dropped; ends != o.Received || o.Received < n {
		t.Errorf("%d received, %d ends, %d sent", o.Received, ends, n)
	}
	drops := must.Get(r.Drops())(t)
	var counted uint64
	for k, v := range drops {
		if k.Reason == 0 || int(k.Reason) >= len(Reasons()) {
			t.Errorf("%d drops under reason %d", v, k.Reason)
		}
		counted += v
	}
	must.Equal(t, o.Dropped, counted)
	if o.Forwarded == 0 || o.Dropped == 0 || o.Passed == 0 || o.Decapped == 0 {
		t.Errorf("the packets did not reach every end: %+v", o)
	}
}

func fuzzSeeds(t *testing.T) [][]byte {
	var seeds [][]byte
	for _, encap := range allEncaps {
		for _, v6 := range []bool{false, true} {
			ip := packet(t, addrB, addrA, 0, 9, "some payload")
			ip6 := packet(t, addrB6, addrA6, 0, 9, "some payload")
			if encap != model.VXLAN {
				seeds = append(seeds, wrapped(t, encap, v6, 18, 0, ip), wrapped(t, encap, v6, 18, 0, ip6))
			}
			seeds = append(seeds, wrapped(t, encap, v6, labelOf(encap, true), 0, frame(macB, macA, ip)),
				wrapped(t, encap, v6, labelOf(encap, true), 0, frame(model.RouterMAC, model.RouterMAC, ip6)))
		}
	}
	for _, to := range []netip.Addr{addrB, netip.MustParseAddr("10.1.0.12"), netip.MustParseAddr("10.1.0.1"), netip.MustParseAddr("10.9.9.9")} {
		seeds = append(seeds, frame(macA, model.RouterMAC, packet(t, addrA, to, 0, 64, "x")), frame(macA, macB, packet(t, addrA, to, 0, 64, "x")))
	}
	seeds = append(seeds, frame(macA, model.RouterMAC, packet(t, addrA6, addrB6, 0, 64, "x")))
	arp := append(append(append([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, macA[:]...), 8, 6, 0, 1, 8, 0, 6, 4, 0, 1), macA[:]...)
	seeds = append(seeds, append(append(append(arp, addrA.AsSlice()...), make([]byte, 6)...), addrB.AsSlice()...))
	return seeds
}

// serviceSeeds returns packets to services, answers, and errors about both.
func serviceSeeds(t *testing.T) (seeds [][]byte) {
	for _, a := range families {
		client, service, backend := at(a.client, 40000), at(a.service, 80), at(a.backend, 80)
		for _, protocol := range []uint8{unix.IPPROTO_TCP, unix.IPPROTO_UDP, unix.IPPROTO_SCTP} {
			for _, ip := range [][]byte{
				segment{client, service, protocol, "S"}.packet(t), segment{client, service, protocol, "A"}.packet(t),
				segment{at(a.client, 80), at(a.service, 40000), protocol, "A"}.packet(t),
				portUnreachable(t, a.client, a.service, segment{service, client, protocol, "A"}.packet(t)),
				portUnreachable(t, a.client, a.service, segment{at(a.service, 40000), at(a.client, 80), protocol, "A"}.packet(t)),
			} {
				seeds = append(seeds, frame(macA, model.RouterMAC, ip))
			}
			for _, ip := range [][]byte{
				segment{backend, client, protocol, "AS"}.packet(t),
				portUnreachable(t, a.backend, a.client, segment{client, backend, protocol, "A"}.packet(t)),
			} {
				seeds = append(seeds, wrapped(t, model.MPLSoUDP, false, 18, 0, ip))
			}
		}
	}
	return seeds
}

// mutate changes a seed by a few bytes, its length, or not at all; now and then
// it is all random.
func mutate(r *rand.Rand, seeds [][]byte) []byte {
	b := append([]byte(nil), seeds[r.IntN(len(seeds))]...)
	switch r.IntN(8) {
	case 0:
		return b
	case 1: // pure noise, as long as the kernel wants a frame to be at least
		b = make([]byte, 15+r.IntN(200))
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return b
	case 2:
		b = b[:15+r.IntN(len(b)-14)] // the kernel takes no shorter frame
	case 3:
		b = append(b, make([]byte, r.IntN(1000))...)
	}
	for range 1 + r.IntN(4) {
		if r.IntN(2) == 0 {
			b[r.IntN(len(b))] ^= 1 << r.IntN(8)
		} else {
			b[r.IntN(len(b))] = byte(r.Uint32())
		}
	}
	return b
}
