package flowtest

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"windtunnel/vrouter/layout"
)

// seeds are one frame of every shape that the parser knows.
func seeds() [][]byte {
	head := split(udp(local6, remote6, 3000), 1480, 6)
	return [][]byte{
		tcp(local4, remote4, "S"), tcp(local6, remote6, "A"), udp(local4, remote4, 9), udp(local6, remote6, 9),
		icmp(local4.Addr(), remote4.Addr(), 8, 3), icmp(local6.Addr(), remote6.Addr(), 128, 3),
		icmp6(local6.Addr(), remote6.Addr(), 135, 255, make([]byte, 20)),
		quoting(remote4.Addr(), local4.Addr(), 3, udp(local4, remote4, 9), 60),
		quoting(remote6.Addr(), local6.Addr(), 2, tcp(local6, remote6, "A"), 90),
		quoting(remote6.Addr(), local6.Addr(), 1, head[1], 90), head[0][:200], head[1][:200],
		split(udp(local4, remote4, 3000), 1480, 6)[1][:200],
		extend(tcp(local6, remote6, "S"), 0, append(extension(60, 1), extension(6, 0)...)),
		raw(local4.Addr(), remote4.Addr(), 47, make([]byte, 16)),
	}
}

// mayPass tells whether a vif that admits nothing may let a frame pass: it is
// no IP, or neighbour discovery.
func mayPass(f []byte) bool {
	if t := uint16(f[12])<<8 | uint16(f[13]); t != 0x0800 && t != 0x86dd {
		return true
	}
	if f[14]>>4 != 6 || len(f) < 14+40+8 || f[14+7] != 255 {
		return false
	}
	for at, next := 14+40, f[14+6]; at+8 <= len(f); {
		switch next {
		case 0, 43, 60:
			next, at = f[at], at+8*(int(f[at+1])+1)
		case 44:
			next, at = f[at], at+8
		case 58:
			return f[at] >= 133 && f[at] <= 137
		default:
			return false
		}
	}
	return false
}

// check holds for any frame whatsoever: it gets a verdict with a reason that
// an operator can read, and nothing passes a vif that admits nothing.
func (h *harness) check(d direction, frame []byte) (verdict int32, ran bool) {
	h.t.Helper()
	context := skbContext{Mark: vifKey, CB: [5]uint32{uint32(d)}}
	result, err := h.Admit.Run(&ebpf.RunOptions{Data: frame, Context: context})
	if errors.Is(err, unix.EINVAL) {
		return 0, false // too short for its Ethernet type to be tested
	}
	if err != nil {
		h.t.Fatalf("%x: %v", frame, err)
	}
	switch verdict = int32(result); verdict {
	case denied, malformed, withoutHead:
	case admitted:
		if !mayPass(frame) {
			h.t.Errorf("%x passed a vif that admits nothing", frame)
		}
	default:
		h.t.Errorf("%x: verdict %d, which is no reason of admit's", frame, verdict)
	}
	index, err := h.Choose.Run(&ebpf.RunOptions{Data: frame, Context: skbContext{Mark: vifKey, CB: [5]uint32{composite, 3, 4}}})
	if err != nil || index > 2 {
		h.t.Errorf("%x: member %d of 3, %v", frame, index, err)
	}
	return verdict, true
}

func FuzzNoFramePassesAVifThatAdmitsNothing(f *testing.F) {
	for _, s := range seeds() {
		f.Add(s, true)
		f.Add(s, false)
	}
	h := load(f)
	h.apply(policy{generation: 1})
	h.compose(21, 22, 23)
	f.Fuzz(func(t *testing.T, frame []byte, in bool) {
		if len(frame) < 15 || len(frame) > 2000 {
			t.Skip("no frame")
		}
		h.t = t
		h.check(layout.If(in, toWorkload), frame)
	})
}

func TestMutatedFramesNeverPassAVifThatAdmitsNothing(t *testing.T) {
	h := load(t)
	h.apply(policy{generation: 1})
	h.compose(21, 22, 23)
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	all, counts := seeds(), map[int32]int{}
	for range 50000 {
		f := append([]byte(nil), pick(r, all)...)
		for range 1 + r.IntN(4) {
			f[12+r.IntN(min(len(f)-12, 70))] = byte(r.Uint32())
		}
		if r.IntN(4) == 0 {
			f = f[:15+r.IntN(len(f)-15)]
		}
		if v, ran := h.check(direction(r.IntN(2)), f); ran {
			counts[v]++
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	for _, v := range []int32{admitted, denied, malformed, withoutHead} {
		if counts[v] < 500 {
			t.Errorf("verdict %d came %d times in %v: the mutations miss what they are for", v, counts[v], counts)
		}
	}
	t.Logf("verdicts: %v", counts)
}
