package datapath

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
)

// What the verifier may walk of each program; a million is its limit. A figure
// that grows tells of a program that will be refused by some kernel one day.
func TestTheVerifierWalksFewInstructions(t *testing.T) {
	d := shared(t)
	programs := must.Get(d.Programs())(t)
	// The global functions for services and NAT have about 12,000 of these in from_workload, and 10,000 in fabric_tc.
	most := map[string]uint32{"from_workload": 55_500, "fabric_tc": 42_500, "fabric_xdp": 3_000, "fabric_out": 1_000, "looped": 4_000}
	for _, p := range programs {
		t.Logf("%s: %d instructions, the verifier walked %d, %d bytes as machine code", p.Name, p.Instructions, p.VerifiedInstructions, p.JITedBytes)
		if p.VerifiedInstructions == 0 || p.VerifiedInstructions > most[p.Name] {
			t.Errorf("%s: the verifier walked %d instructions; %d are allowed", p.Name, p.VerifiedInstructions, most[p.Name])
		}
	}
	must.Equal(t, len(most), len(programs))
}

// nanoseconds that a run of p takes by the kernel's own clock around it, the
// median of rounds, less those of an empty program.
func nanoseconds(b *testing.B, p *ebpf.Program, run func()) float64 {
	b.Helper()
	stop, err := ebpf.EnableStats(uint32(unix.BPF_STATS_RUN_TIME))
	if err != nil {
		b.Skip("the kernel's program statistics: " + err.Error())
	}
	defer stop.Close()
	var rounds []float64
	for range 21 {
		before, err := p.Stats()
		must.Succeed(b, err)
		for range 1000 {
			run()
		}
		after, err := p.Stats()
		must.Succeed(b, err)
		rounds = append(rounds, float64(after.Runtime-before.Runtime)/float64(after.RunCount-before.RunCount))
	}
	slices.Sort(rounds)
	return rounds[len(rounds)/2]
}

// rigWithRoutes returns a rig with n more host routes to the node far, and up to `used` of their
// addresses in random order. change, if not nil, changes the tables.
func rigWithRoutes(b *testing.B, n, used int, v6 bool, change func(*fib.Tables)) (r *rig, to []netip.Addr) {
	b.Helper()
	dir := pins(b)
	devices := enterSpace(b, 3)
	limits := small
	limits.Routes = uint32(n + 100)
	r = &rig{Datapath: open(b, Options{Pins: dir, Limits: limits}), vif: devices[0], vif2: devices[1], fabric: devices[2]}
	f := scene(r.vif, r.vif2, r.fabric, model.MPLSoUDP, false)
	for i := range n {
		a := netip.AddrFrom4([4]byte{100, byte(i >> 16), byte(i >> 8), byte(i)})
		if v6 {
			a = netip.AddrFrom16([16]byte{0xfd, 0, 0, 1, 8: 100, 13: byte(i >> 16), 14: byte(i >> 8), 15: byte(i)})
		}
		f.Routes[fib.RouteKey{VRF: 1, Prefix: netip.PrefixFrom(a, a.BitLen())}] = layout.Route{Nexthop: nhTunnel, Label: 18}
		if i%(n/used+1) == 0 {
			to = append(to, a)
		}
	}
	if change != nil {
		change(&f)
	}
	if _, err := r.Apply(f); err != nil {
		b.Fatal(err)
	}
	rand.Shuffle(len(to), func(i, j int) { to[i], to[j] = to[j], to[i] })
	return r, to
}

// emptyProgram returns a program that does nothing.
func emptyProgram(b *testing.B) *ebpf.Program {
	b.Helper()
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SchedCLS, License: "GPL", Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()}})
	must.Succeed(b, err)
	b.Cleanup(func() { p.Close() })
	return p
}

// The time of one packet through each program, with one route and with a
// million host routes of which random ones are asked for.
func BenchmarkPacket(b *testing.B) {
	for _, n := range []int{1, 1_000_000} {
		b.Run(fmt.Sprintf("%d routes", n), func(b *testing.B) {
			r, to := rigWithRoutes(b, n, 1000, false, nil)
			empty := emptyProgram(b)
			var frames [][]byte
			for _, a := range to {
				frames = append(frames, frame(macA, model.RouterMAC, packet(b, addrA, a, 0, 64, "x")))
			}
			arrival := wrapped(b, model.MPLSoUDP, false, 18, 0, packet(b, addrB, addrA, 0, 9, "x"))
			for b.Loop() {
				i := 0
				idle := nanoseconds(b, empty, func() { r.run(b, empty, r.vif, frames[0]) })
				out := nanoseconds(b, r.programs.FromWorkload, func() { r.run(b, r.programs.FromWorkload, r.vif, frames[i%len(frames)]); i++ })
				xdp := nanoseconds(b, r.programs.FabricXdp, func() { r.xdp(b, arrival) })
				in := nanoseconds(b, r.programs.FabricTc, func() { r.run(b, r.programs.FabricTc, r.fabric, arrival) })
				b.ReportMetric(out-idle, "ns/from_workload")
				b.ReportMetric(xdp-idle, "ns/fabric_xdp")
				b.ReportMetric(in-idle, "ns/fabric_tc")
				b.ReportMetric(idle, "ns/empty")
			}
		})
	}
}
