package datapath

import (
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
)

// hosts are n host routes beside a scene's own.
func hosts(n int) fib.Tables {
	f := scene(7, 8, 9, model.MPLSoUDP, false)
	for i := range n {
		a := netip.AddrFrom4([4]byte{100, byte(i >> 16), byte(i >> 8), byte(i)})
		f.Routes[fib.RouteKey{VRF: 1 + uint32(i%64), Prefix: netip.PrefixFrom(a, 32)}] = layout.Route{Nexthop: nhTunnel, Label: 18}
	}
	return f
}

// residentMB is the largest memory that this process had resident so far.
func residentMB(b *testing.B) float64 {
	text, err := os.ReadFile("/proc/self/status")
	must.Succeed(b, err)
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, err := strconv.Atoi(strings.Fields(rest)[0])
			must.Succeed(b, err)
			return float64(kb) / 1024
		}
	}
	b.Fatal("/proc/self/status has no VmHWM")
	return 0
}

// What an Apply costs: into empty maps, with nothing to do, with one more
// route, and back to nothing.
func BenchmarkApply(b *testing.B) {
	for _, n := range []int{1000, 100_000, 1_000_000} {
		b.Run(fmt.Sprintf("%d routes", n), func(b *testing.B) {
			limits := small
			limits.Routes = uint32(n + 100)
			d := open(b, Options{Pins: pins(b), Limits: limits})
			want := hosts(n)
			more := hosts(n + 1)
			none := fib.Tables{Settings: want.Settings}
			var sums [4]time.Duration
			for b.Loop() {
				for i, f := range []fib.Tables{want, want, more, none} {
					start := time.Now()
					if _, err := d.Apply(f); err != nil {
						b.Fatal(err)
					}
					sums[i] += time.Since(start)
				}
			}
			for i, what := range []string{"fill", "same", "one-more", "empty"} {
				b.ReportMetric(sums[i].Seconds()*1000/float64(b.N), what+"-ms")
			}
			b.ReportMetric(residentMB(b), "resident-MB")
		})
	}
}

func BenchmarkOpen(b *testing.B) {
	dir := pins(b)
	for b.Loop() {
		d, err := Open(Options{Pins: dir})
		must.Succeed(b, err)
		must.Succeed(b, d.Close())
	}
}

// The cost of queries of operators and monitors, with the default limits.
func BenchmarkOperatorQueries(b *testing.B) {
	d := open(b, Options{Pins: pins(b), Limits: Limits{}.WithDefaults()})
	if _, err := d.Apply(scene(1, 8, 9, model.MPLSoUDP, false)); err != nil {
		b.Fatal(err)
	}
	frame := make([]byte, 60)
	copy(frame, []byte{0, 0, 0x5e, 0, 1, 0, 2, 0, 0, 0, 0, 0xa, 0x08, 0x00, 0x45})
	for _, q := range []struct {
		name string
		ask  func() error
	}{
		{"vifstats", func() error { _, err := d.VifStats(); return err }},
		{"vrfstats", func() error { _, err := d.VRFStats(); return err }},
		{"drops", func() error { _, err := d.Drops(); return err }},
		{"learned MTUs", func() error { _, err := d.LearnedMTUs(); return err }},
		{"dump", func() error { _, err := d.Dump(); return err }},
		{"expiry", func() error { _, _, err := d.ExpireFlows(); return err }},
		{"trace", func() error { _, _, err := d.Trace(1, frame); return err }},
	} {
		b.Run(q.name, func(b *testing.B) {
			for b.Loop() {
				must.Succeed(b, q.ask())
			}
		})
	}
}
