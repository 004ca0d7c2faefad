package validity

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// Whatever was measured, a gate has figures that can be printed and compared.
func FuzzJudge(f *testing.F) {
	f.Add(uint8(0), 2.0, 0.1, int64(0), 0.1, 0.2, 3.0, []byte("sixteen bytes of a series, and then some more"))
	f.Add(uint8(1), 1e-300, 0.1, int64(1e9), math.Inf(1), math.NaN(), -1.0, make([]byte, 400))
	f.Add(uint8(2), 1e300, 1e-300, int64(-5), 1e308, 1e308, 1e308, []byte{})
	f.Fuzz(func(t *testing.T, kind uint8, window, step float64, rate int64, x, y, z float64, raw []byte) {
		in := Input{
			Workload: suite.Workload{Kind: []suite.Kind{suite.TCPStream, suite.UDPStream, suite.TCPRR}[kind%3], Rate: rate},
			Metrics: sample.Metrics{
				sample.Throughput: x, sample.SenderThroughput: y, sample.OfferedRate: z, sample.LossRatio: x,
				sample.FabricBits: y, sample.SenderStealCPU: z, sample.ReceiverStealCPU: x,
			},
			Window: window, Step: step,
			Sides: []Side{
				{"a", int(kind), []float64{x, y, z}, &x, "p", y, "/g", uint64(kind), uint64(rate)}, {"b", int(rate % 8), []float64{0, step, z}, &z, "", x, "", 0, uint64(kind)}, {"c", 1, nil, &y, "q", z, "", 0, 0},
			},
			Stray:     map[int]float64{1: x, 2: y, 3: z},
			Quiet:     &x,
			ClockStep: &y,
		}
		if kind&128 != 0 {
			delete(in.Metrics, sample.SenderThroughput)
			delete(in.Metrics, sample.OfferedRate)
		}
		for at := 0.0; len(raw) >= 4 && len(in.Series) < 200; raw = raw[4:] {
			at += step
			bits := float64(math.Float32frombits(binary.LittleEndian.Uint32(raw)))
			if kind&64 != 0 {
				bits *= 1e270
			}
			in.Series = append(in.Series, sample.Point{At: at, Bits: bits})
		}
		failed, flags, unjudged := Judge(in, Default)
		if len(failed)+len(flags)+len(unjudged) > 10 {
			t.Errorf("%d gates failed, %d are flags and %d were not judged, of 10", len(failed), len(flags), len(unjudged))
		}
		for _, g := range slices.Concat(failed, flags) {
			_, value := finite(g.Value)
			_, limit := finite(g.Limit)
			if !value || !limit || g.Message == "" || g.Unit == "" {
				t.Errorf("the gate %+v lacks a finite value or limit, a message or a unit", g)
			}
		}
		if from, _ := steadyFrom(in.Series, window); math.IsNaN(from) || math.IsInf(from, 0) {
			t.Errorf("steady from %v", from)
		}
	})
}
