package validity

import (
	"math"
	"regexp"
	"strings"
	"testing"

	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// good is a trial that passes every gate: an unlimited TCP stream between two
// nodes of two CPUs each, over a window of 2 s.
func good() Input {
	return Input{
		Workload: suite.Workload{Kind: suite.TCPStream, Direction: suite.Forward, Streams: 1},
		Metrics: sample.Metrics{
			sample.Throughput: 9.5e9, sample.FabricBits: 10e9,
			sample.SenderStealCPU: 0, sample.ReceiverStealCPU: 0,
		},
		Series: series(20, func(i int) float64 { return 10e9 + 1e8*float64(i%3) }),
		Window: 2, Step: 0.1,
		Sides: []Side{
			{Node: "a", CPUs: 2, Foreign: new(0.0), Readings: readings(20)},
			{Node: "b", CPUs: 2, Foreign: new(0.0), Readings: readings(20)},
		},
		Stray: map[int]float64{}, Quiet: new(0.0), ClockStep: new(0.0),
	}
}

// readings are n steps of 100 ms, the first from 0.
func readings(n int) []float64 {
	list := make([]float64, n+1)
	for i := range list {
		list[i] = float64(i) / 10
	}
	return list
}

// series has steps of 100 ms, the first from 0.
func series(n int, bits func(i int) float64) []sample.Point {
	points := []sample.Point{{At: 0, Bits: bits(0)}}
	for i := range n {
		points = append(points, sample.Point{At: float64(i+1) / 10, Bits: bits(i)})
	}
	return points
}

func TestAGoodTrialPassesEveryGate(t *testing.T) {
	failed, flags, unjudged := Judge(good(), Default)
	if len(failed) != 0 || len(flags) != 0 || len(unjudged) != 0 {
		t.Errorf("failed %+v, flags %+v, not judged %q", failed, flags, unjudged)
	}
}

// remedy matches a message with a remedy, which begins with a verb.
var remedy = regexp.MustCompile(`[:;] (ask|choose|end|give|keep|remove|stop|use|wait) `)

// Every gate, below, at and above its limit. value 0 means that it passes.
func TestGatesFailAboveTheirLimits(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Input)
		gate   sample.GateName
		value  float64
		says   []string
	}{
		{"no foreign CPU to speak of", func(in *Input) { in.Sides[0].Foreign = new(0.1) }, sample.ForeignCPU, 0, nil},
		{"foreign CPU at the limit", func(in *Input) { in.Sides[1].Foreign = new(0.12) }, sample.ForeignCPU, 0, nil},
		{"foreign CPU", func(in *Input) {
			in.Sides[1].Foreign, in.Sides[1].Culprit, in.Sides[1].CulpritTook = new(1.4), "ffmpeg", 1.24
		}, sample.ForeignCPU, 35, []string{"35.0 % of the CPUs of node b (receiver)", "most of it ffmpeg (31.0 %)", "limit is 3 %"}},
		{"foreign CPU at both sides counts by the worse", func(in *Input) {
			in.Sides[0].Foreign, in.Sides[1].Foreign = new(0.8), new(0.4)
		}, sample.ForeignCPU, 20, []string{"node a (sender); the limit"}},
		{"foreign CPU at a node of both sides", func(in *Input) {
			in.Sides = in.Sides[:1]
			in.Sides[0].Foreign = new(0.4)
		}, sample.ForeignCPU, 10, []string{"node a (both sides)"}},

		{"one tick of steal", func(in *Input) { in.Metrics[sample.SenderStealCPU] = 0.5 }, sample.Steal, 0, nil},
		{"steal at the limit", func(in *Input) { in.Metrics[sample.SenderStealCPU] = 2 }, sample.Steal, 0, nil},
		{"steal", func(in *Input) { in.Metrics[sample.ReceiverStealCPU] = 7.5 }, sample.Steal, 7.5, []string{"7.5 %", "node b (receiver)", "limit is 2 %"}},

		{"another CPU with softirqs", func(in *Input) { in.Stray = map[int]float64{4: 0.5} }, sample.StrayCPU, 0, nil},
		{"another CPU at the limit", func(in *Input) { in.Stray = map[int]float64{4: 0.9} }, sample.StrayCPU, 0, nil},
		{"other CPUs full of softirqs", func(in *Input) { in.Stray = map[int]float64{7: 0.97, 4: 0.95, 5: 0.1} }, sample.StrayCPU, 97,
			[]string{"CPU 4 for 95 % and CPU 7 for 97 %", "limit is 90 %"}},

		{"a rate that rises by less than a tenth", func(in *Input) { in.Series = ramp(9) }, sample.Unsteady, 0, nil},
		{"a rate that rises by a tenth", func(in *Input) { in.Series = ramp(10) }, sample.Unsteady, 0, nil},
		{"a rate that rises", func(in *Input) { in.Series = ramp(12) }, sample.Unsteady, 12, []string{"rose by 12 %", "10 Gbit/s", "limit is 10 %"}},
		{"a rate that falls", func(in *Input) { in.Series = ramp(-20) }, sample.Unsteady, 20, []string{"fell by 20 %"}},
		{"a paced rate that falls", func(in *Input) {
			in.Series, in.Workload.Rate = ramp(-20), 9.5e9
		}, sample.Unsteady, 20, []string{"fell by 20 %"}},
		{"a rate that spreads less than a quarter", func(in *Input) { in.Series = jumps(0.16) }, sample.Unsteady, 0, nil},
		{"a rate that spreads by a quarter", func(in *Input) { in.Series = jumps(0.25 / 1.4826) }, sample.Unsteady, 0, nil},
		{"a rate that jumps", func(in *Input) { in.Series = jumps(0.2) }, sample.Unsteady, 29.652, []string{"the rate jumped", "30 % of their median, 10 Gbit/s", "limit is 25 %"}},
		{"a paced rate that jumps", func(in *Input) {
			in.Series, in.Workload.Rate = jumps(0.2), 9.5e9
		}, sample.Unsteady, 0, nil},
		{"datagrams that jump", func(in *Input) { in.Series, in.Workload.Kind = jumps(0.2), suite.UDPStream }, sample.Unsteady, 0, nil},
		{"a short window that jumps", func(in *Input) { in.Series, in.Window = jumps(0.2)[:11], 1 }, sample.Unsteady, 0, nil},
		{"a start-up of a third", func(in *Input) { in.Series = startUp(6, 5e9) }, sample.Unsteady, 0, nil},
		{"a start-up of half that is a little off", func(in *Input) { in.Series = startUp(10, 8e9) }, sample.Unsteady, 26.26, []string{"rose by 26 %"}},
		{"a start-up of half", func(in *Input) { in.Series = startUp(10, 5e9) }, sample.Unsteady, 50, []string{"had not settled", "5 Gbit/s before 1.0 s and 10 Gbit/s after", "50 % apart; the limit is 25 %"}},
		{"a stream that stands still for most of it", func(in *Input) {
			in.Series = series(20, func(i int) float64 { return map[bool]float64{true: 1e10}[i%4 == 2] })
		}, sample.Unsteady, 0, nil},

		{"a generator on target", func(in *Input) { target(in, 9.1e8) }, sample.OffTarget, 0, nil},
		{"a generator at the limit", func(in *Input) { target(in, 9e8) }, sample.OffTarget, 0, nil},
		{"a generator below its target", func(in *Input) { target(in, 8e8) }, sample.OffTarget, 80, []string{"800 Mbit/s of the 1 Gbit/s", "80 %; the limit is 90 %"}},
		{"both directions are asked for", func(in *Input) {
			target(in, 1.7e9)
			in.Workload.Direction = suite.Both
		}, sample.OffTarget, 85, []string{"2 Gbit/s"}},
		{"what the tool says that it offered", func(in *Input) {
			target(in, 5e8)
			in.Metrics[sample.OfferedRate] = 5.2e8
		}, sample.OffTarget, 0, nil},
		{"lost datagrams were sent", func(in *Input) {
			target(in, 5e8)
			in.Workload.Kind, in.Metrics[sample.LossRatio] = suite.UDPStream, 0.5
		}, sample.OffTarget, 0, nil},
		{"datagrams that were never sent", func(in *Input) {
			target(in, 5e8)
			in.Workload.Kind, in.Metrics[sample.SenderThroughput] = suite.UDPStream, 6e8
		}, sample.OffTarget, 60, []string{"600 Mbit/s of the 1 Gbit/s"}},
		{"no rate was asked for", func(in *Input) { in.Metrics[sample.Throughput] = 1 }, sample.OffTarget, 0, nil},

		{"requests at their pace", func(in *Input) {
			in.Metrics[sample.OfferedRequests], in.Metrics[sample.Transactions] = 1000, 950
		}, sample.OffTarget, 0, nil},
		{"requests behind their pace", func(in *Input) {
			in.Metrics[sample.OfferedRequests], in.Metrics[sample.Transactions] = 1000, 800
		}, sample.OffTarget, 80, []string{"800 of the 1000 requests per second", "80 %; the limit is 90 %"}},
		{"a loss that is allowed", func(in *Input) { in.Workload.Loss, in.Metrics[sample.LossRatio] = 0.001, 0.001 }, sample.AboveLoss, 0, nil},
		{"a loss above the search's bound", func(in *Input) { in.Workload.Loss, in.Metrics[sample.LossRatio] = 0.001, 0.004 }, sample.AboveLoss, 0.4, []string{"0.4 % of the datagrams", "the limit is 0.1 %"}},
		{"a loss without a bound", func(in *Input) { in.Metrics[sample.LossRatio] = 0.5 }, sample.AboveLoss, 0, nil},

		{"a quiet fabric", func(in *Input) { in.Quiet = new(9e7) }, sample.StillMoving, 0, nil},
		{"a fabric at the limit", func(in *Input) { in.Quiet = new(1e8) }, sample.StillMoving, 0, nil},
		{"a fabric that goes on", func(in *Input) { in.Quiet = new(3e8) }, sample.StillMoving, 3, []string{"300 Mbit/s still moved", "3.0 % of the window's rate; the limit is 1 %"}},
		{"address resolution beside little traffic", func(in *Input) {
			in.Quiet, in.Metrics[sample.FabricBits] = new(1e6), 2e6
		}, sample.StillMoving, 0, nil},

		{"a packet for each send", func(in *Input) { packets(in, 1255) }, sample.PacketSize, 0, nil},
		{"merged sends", func(in *Input) { packets(in, 1448) }, sample.PacketSize, 1448, []string{"1448 bytes of payload instead of 1390", "builtin-ntttcp"}},
		{"divided sends", func(in *Input) { packets(in, 695) }, sample.PacketSize, 695, []string{"695 bytes of payload instead of 1390"}},
		{"superframes that nothing forbids", func(in *Input) { in.Metrics[sample.SentPacket] = 44000 }, sample.PacketSize, 0, nil},
		{"a DSCP that the wire shows", func(in *Input) { marked(in, 0.983) }, sample.WrongDSCP, 0, nil},
		{"a DSCP that a tunnel hides", func(in *Input) { marked(in, 0.002) }, sample.WrongDSCP, 0.2, []string{"0.2 % of the bytes on the wire have the DSCP EF", "the limit is 90 %"}},
		{"a workload without a DSCP", func(in *Input) { in.Metrics[sample.DSCPShare] = 0 }, sample.WrongDSCP, 0, nil},

		{"clocks together", func(in *Input) { in.ClockStep = new(0.004) }, sample.ClockJump, 0, nil},
		{"clocks at the limit", func(in *Input) { in.ClockStep = new(-0.005) }, sample.ClockJump, 0, nil},
		{"a clock set forward", func(in *Input) { in.ClockStep = new(0.25) }, sample.ClockJump, 250, []string{"forward by 250.0 ms", "limit is 5 ms"}},
		{"a clock set back", func(in *Input) { in.ClockStep = new(-0.006) }, sample.ClockJump, 6, []string{"back by 6.0 ms"}},

		{"a reading that is late", func(in *Input) { late(in, 0, 0.049) }, sample.MachineStall, 0, nil},
		{"a reading at the limit", func(in *Input) { late(in, 1, 0.050) }, sample.MachineStall, 0, nil},
		{"a sender that stood still", func(in *Input) { late(in, 0, 0.051) }, sample.MachineStall, 51, []string{"node a (sender)", "51 ms, 1.0 s into the window", "limit is 50 ms"}},
		{"a receiver that stood still", func(in *Input) { late(in, 1, 0.3) }, sample.MachineStall, 300, []string{"node b (receiver) stood still for 300 ms"}},
		{"a node of both sides that stood still", func(in *Input) {
			late(in, 0, 0.3)
			in.Sides = in.Sides[:1]
		}, sample.MachineStall, 300, []string{"node a (both sides)"}},
		{"a machine that stood still after the window", func(in *Input) {
			in.Sides[1].Readings = append(in.Sides[1].Readings, 2.1, 3)
		}, sample.MachineStall, 0, nil},
		{"a machine that stood still across the window's end", func(in *Input) {
			in.Sides[1].Readings[20] = 2.2
		}, sample.MachineStall, 200, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := good()
			c.change(&in)
			failed, other, unjudged := Judge(in, Default)
			if c.gate.Outcome() {
				failed, other = other, failed
			}
			if len(other) != 0 || len(unjudged) != 0 {
				t.Errorf("of the other kind %+v, not judged: %q", other, unjudged)
			}
			if c.value == 0 {
				if len(failed) != 0 {
					t.Errorf("failed: %+v", failed)
				}
				return
			}
			if len(failed) != 1 || failed[0].Name != c.gate || math.Abs(failed[0].Value-c.value) > 1e-3*c.value {
				t.Fatalf("failed %+v; want %s with %v", failed, c.gate, c.value)
			}
			if !remedy.MatchString(failed[0].Message) {
				t.Errorf("the message has no remedy: %s", failed[0].Message)
			}
			for _, part := range c.says {
				if !strings.Contains(failed[0].Message, part) {
					t.Errorf("%q is not in the message: %s", part, failed[0].Message)
				}
			}
		})
	}
}

// ramp rises by so many percent of its median in the window.
func ramp(percent float64) []sample.Point {
	return series(20, func(i int) float64 { return 10e9 * (1 + percent/100*(float64(i)-9.5)/20) })
}

// jumps has steps that lie beside the median by this part of it, in an order
// that has no trend.
func jumps(apart float64) []sample.Point {
	return series(20, func(i int) float64 { return 10e9 * (1 + apart*[]float64{1, -1, -1, 1}[i%4]) })
}

// startUp has n steps of another rate first.
func startUp(n int, bits float64) []sample.Point {
	return series(20, func(i int) float64 {
		if i < n {
			return bits + 1e7*float64(i%2)
		}
		return 10e9 + 1e7*float64(i%2)
	})
}

// target asks for 1 Gbit/s.
func target(in *Input, achieved float64) {
	in.Workload.Rate, in.Metrics[sample.Throughput] = 1e9, achieved
}

// late delays a side's reading after 1.0 s and all that follow.
func late(in *Input, side int, by float64) {
	for i := 11; i < len(in.Sides[side].Readings); i++ {
		in.Sides[side].Readings[i] += by
	}
}

// marked gives the workload the DSCP EF, and sets the measured share of the bytes that have it.
func marked(in *Input, share float64) {
	in.Workload.DSCP = 46
	in.Metrics[sample.DSCPShare] = share
}

// packets asks for a packet of 1390 bytes for each send, and sets the measured size.
func packets(in *Input, size float64) {
	in.Workload = suite.Workload{Kind: suite.TCPStream, Buffer: 1390, PacketPerSend: true}
	in.Metrics[sample.SentPacket] = size
}

// The limit is 0: a quota stops processes for most of a period.
func TestAQuotaThatTookEffectFailsTheTrial(t *testing.T) {
	in := good()
	in.Sides[0].Group, in.Sides[0].Periods, in.Sides[0].Throttled = "/x", 20, 1
	in.Sides[1].Group, in.Sides[1].Periods, in.Sides[1].Throttled = "/ci", 269, 175
	failed, _, _ := Judge(in, Default)
	if len(failed) != 1 || failed[0].Name != sample.CPUQuota || math.Abs(failed[0].Value-100*175.0/269) > 1e-9 ||
		!strings.Contains(failed[0].Message, "control group /ci stopped processes of node b (receiver) in 175 of 269 periods") {
		t.Errorf("the failed gates are %+v, want the CPU quota of 175 in 269 periods", failed)
	}
	in.Sides[0].Throttled, in.Sides[1].Throttled = 0, 0
	if failed, _, _ := Judge(in, Default); len(failed) > 0 {
		t.Errorf("a quota without effect: %+v", failed)
	}
}
