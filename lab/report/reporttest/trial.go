package reporttest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

const window = 3.0 // seconds

// trials returns every attempt at one scenario in one block.
func trials(sc *suite.Scenario, index, block, position int) []sample.Sample {
	s := trial(sc, index, block, position)
	switch {
	case sc.ID == "bridge/stream" && block == 3:
		hung := failed(s, sample.ToolHung, "builtin client on a1 did not end within 12 s and was killed; the trial is repeated")
		s.Attempt = 1
		s.Started = s.Started.Add(12 * time.Second)
		return []sample.Sample{hung, s}
	case sc.ID == "vxlan/rr" && block == 2:
		first := failed(s, sample.NoResult, "builtin client on a1 ended well but printed no result")
		second := failed(s, sample.NoResult, "builtin client on a1 ended well but printed no result")
		second.Attempt = 1
		second.Started = second.Started.Add(4 * time.Second)
		return []sample.Sample{first, second}
	}
	return []sample.Sample{s}
}

func failed(s sample.Sample, kind sample.FailureKind, message string) sample.Sample {
	s.Failure = &sample.Failure{Kind: kind, Message: message}
	s.Metrics, s.Latency, s.Series, s.Hops = nil, "", nil, nil
	return s
}

func trial(sc *suite.Scenario, index, block, position int) sample.Sample {
	rng := rand.New(rand.NewPCG(uint64(index), uint64(block)))
	c := cellAt(index / 2)
	s := sample.Sample{
		Scenario: sc.ID, Block: block, Position: position,
		Started: started.Add(time.Duration(block*8+position) * 4 * time.Second),
		Took:    4200 * time.Millisecond,
		Outputs: []sample.Output{
			{Role: "server", Stdout: "Accepted 1 connection\n"},
			{Role: "client", Stdout: fmt.Sprintf("ntttcp: %s block %d\n", sc.ID, block)},
		},
		Commands: []sample.Command{
			{Role: "server", On: "b1", Argv: []string{"windtunnel", "ntttcp", "-r", "-m", "1,0,10.0.0.2"}},
			{Role: "client", On: "a1", Argv: []string{"windtunnel", "ntttcp", "-s", "-m", "1,0,10.0.0.2", "-t", "3"}},
		},
	}
	// The state of the machine drifts. All trials of a block have the same drift.
	drift := 1 + 0.02*rand.New(rand.NewPCG(99, uint64(block))).NormFloat64()
	noise := func() float64 { return drift * (1 + 0.006*rng.NormFloat64()) }
	if sc.Workload.Kind == suite.TCPStream {
		streamFigures(&s, c, noise, rng)
	} else {
		requestFigures(&s, c, noise, rng)
	}
	s.Hops = hops(c, s.Metrics)
	if block == 4 && sc.ID == "raw/stream" {
		s.Warnings = []string{"steal of 1.2 % on node a within the window"}
	}
	return s
}

func streamFigures(s *sample.Sample, c cell, noise func() float64, rng *rand.Rand) {
	bits := c.bits * noise()
	bytes := bits / 8 * window
	packets := bits / 8 / 1448 * 1.04
	s.Metrics = sample.Metrics{
		sample.Throughput: bits, sample.SenderThroughput: bits * 1.0002, sample.ReceiverThroughput: bits,
		sample.PacketsPerSecond: packets, sample.BytesInWindow: bytes, sample.WindowSeconds: window,
		sample.FabricGoodput: bits * 1.0005, sample.FabricBits: bits * 1.046,
		sample.Retransmits: float64(rng.IntN(4)), sample.Segments: math.Round(bytes / 1448), sample.Errors: 0,
		sample.SegmentsPerSKB: 22 + rng.Float64()*8, sample.Drops: 0,
		sample.RTT: 180_000 * noise(), sample.MSS: 1448, sample.Cwnd: math.Round(600 * noise()),
		sample.FabricCores: 0.18 * noise(), sample.ObserverCores: 0.006,
	}
	if c.placement == suite.TwoNodes {
		s.Metrics[sample.ReceiverSoftirqOnRecv] = 1
	}
	cpu(s.Metrics, c, c.senderCPU*noise(), c.recvCPU*noise(), packets)
	s.Series = make([]sample.Point, 30)
	for i := range s.Series {
		s.Series[i] = sample.Point{At: float64(i-2) / 10, Bits: bits * (1 + 0.03*rng.NormFloat64()),
			SenderCPU: s.Metrics[sample.SenderCPU] * (1 + 0.03*rng.NormFloat64()), ReceiverCPU: s.Metrics[sample.ReceiverCPU] * (1 + 0.03*rng.NormFloat64())}
	}
}

func requestFigures(s *sample.Sample, c cell, noise func() float64, rng *rand.Rand) {
	h := hdrhistogram.New(1, int64(time.Minute), 3)
	centre := c.rtt * noise()
	var sum float64
	const draws = 4000
	for range draws {
		v := centre * math.Exp(0.12*rng.NormFloat64())
		if rng.IntN(500) == 0 {
			v *= 6
		}
		sum += v
		_ = h.RecordValue(int64(v)) // in range by construction: 1 ns to 1 min
	}
	mean := sum / draws
	rate := 1e9 / mean
	s.Metrics = sample.Metrics{
		sample.Transactions: rate, sample.Errors: 0, sample.Retransmits: 0, sample.WindowSeconds: window,
		sample.LatencyMin: float64(h.Min()), sample.LatencyMean: mean,
		sample.LatencyP50: float64(h.ValueAtPercentile(50)), sample.LatencyP90: float64(h.ValueAtPercentile(90)),
		sample.LatencyP99: float64(h.ValueAtPercentile(99)), sample.LatencyP999: float64(h.ValueAtPercentile(99.9)),
		sample.LatencyMax: float64(h.Max()), sample.PacketsPerSecond: 2 * rate, sample.Segments: math.Round(2 * rate * window),
		sample.Drops: 0, sample.ObserverCores: 0.006,
	}
	cpu(s.Metrics, c, 41*noise(), 39*noise(), 2*rate)
	encoded, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		panic(err) // cannot happen: the histogram is valid
	}
	s.Latency = string(encoded)
}

// cpu sets the figures of the CPU meter. Colocated endpoints share one node, so the trial
// has no CPU figures of the receiver.
func cpu(ms sample.Metrics, c cell, sender, receiver, packets float64) {
	side := func(total, perByte, perPacket, cores, user, system, softirq, steal sample.Metric, percent float64) {
		ms[total], ms[cores] = percent, percent/100
		ms[user], ms[system], ms[softirq], ms[steal] = percent*0.04, percent*0.66, percent*0.30, 0
		if bits, ok := ms[sample.Throughput]; ok {
			ms[perByte] = percent / 100 * 1e9 / (bits / 8)
		}
		ms[perPacket] = percent / 100 * 1e9 / packets
	}
	side(sample.SenderCPU, sample.SenderCPUPerByte, sample.SenderCPUPerPacket, sample.SenderCores,
		sample.SenderUserCPU, sample.SenderSystemCPU, sample.SenderSoftirqCPU, sample.SenderStealCPU, sender)
	if c.placement == suite.TwoNodes {
		side(sample.ReceiverCPU, sample.ReceiverCPUPerByte, sample.ReceiverCPUPerPacket, sample.ReceiverCores,
			sample.ReceiverUserCPU, sample.ReceiverSystemCPU, sample.ReceiverSoftirqCPU, sample.ReceiverStealCPU, receiver)
	}
}
