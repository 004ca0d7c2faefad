package validity

import (
	"math"
	"strings"
	"testing"

	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// What is not known neither passes nor fails.
func TestAGateWithoutItsInputIsNotJudged(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Input)
		line   string // its beginning
	}{
		{"no foreign CPU", func(in *Input) { in.Sides[1].Foreign = nil }, "foreign-cpu: "},
		{"foreign CPU is NaN", func(in *Input) { in.Sides[0].Foreign = new(math.NaN()) }, "foreign-cpu: "},
		{"a node without CPUs", func(in *Input) { in.Sides[0].CPUs = 0 }, "foreign-cpu: "},
		{"foreign CPU is refused", func(in *Input) {
			in.Sides[0].Foreign = nil
			in.Unknown = map[sample.GateName]string{sample.ForeignCPU: "this kernel has no BTF"}
		}, "foreign-cpu: this kernel has no BTF"},
		{"no steal", func(in *Input) { delete(in.Metrics, sample.SenderStealCPU) }, "steal: "},
		{"steal is NaN", func(in *Input) { in.Metrics[sample.ReceiverStealCPU] = math.NaN() }, "steal: "},
		{"no other CPUs known", func(in *Input) { in.Stray = nil }, "stray-cpu: "},
		{"a CPU's softirqs are NaN", func(in *Input) { in.Stray[3] = math.NaN() }, "stray-cpu: "},
		{"seven steps", func(in *Input) { in.Series = in.Series[:8] }, "unsteady-rate: 7 steps"},
		{"steps that are NaN", func(in *Input) {
			for i := range 13 {
				in.Series[i+1].Bits = math.NaN()
			}
		}, "unsteady-rate: 7 steps"},
		{"no throughput of a paced stream", func(in *Input) {
			in.Workload.Rate = 1e9
			delete(in.Metrics, sample.Throughput)
		}, "off-target: "},
		{"datagrams of which only those that arrived are known", func(in *Input) {
			in.Workload.Rate, in.Workload.Kind = 1e9, suite.UDPStream
		}, "off-target: "},
		{"nobody looked after the end", func(in *Input) { in.Quiet = nil }, "still-moving: "},
		{"no counters of the fabric", func(in *Input) { delete(in.Metrics, sample.FabricBits) }, "still-moving: "},
		{"no fabric that reads the DSCP", func(in *Input) { in.Workload.DSCP = 46 }, "dscp: nothing reads the DSCP"},
		{"no wall clock", func(in *Input) { in.ClockStep = nil }, "clock-jump: "},
		{"the wall clock is infinite", func(in *Input) { in.ClockStep = new(math.Inf(1)) }, "clock-jump: "},
		{"no interval", func(in *Input) { in.Step = 0 }, "machine-stall: "},
		{"no readings of the receiver", func(in *Input) { in.Sides[1].Readings = nil }, "machine-stall: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := good()
			c.change(&in)
			failed, flags, unjudged := Judge(in, Default)
			if len(failed) != 0 || len(flags) != 0 {
				t.Errorf("failed: %+v, flags: %+v", failed, flags)
			}
			if len(unjudged) != 1 || !strings.HasPrefix(unjudged[0], c.line) || len(unjudged[0]) <= len("foreign-cpu: ") {
				t.Errorf("not judged: %q; want %q and why", unjudged, c.line)
			}
		})
	}
}

// One side that is known to be disturbed is enough.
func TestAGateFailsIfOneSideFailsAndTheOtherIsUnknown(t *testing.T) {
	in := good()
	in.Sides[0].Foreign, in.Sides[1].Foreign = nil, new(2.0)
	in.Metrics[sample.SenderStealCPU] = 50
	delete(in.Metrics, sample.ReceiverStealCPU)
	late(&in, 1, 0.2)
	in.Sides[0].Readings = nil
	failed, _, unjudged := Judge(in, Default)
	if len(failed) != 3 || failed[0].Name != sample.ForeignCPU || failed[1].Name != sample.Steal || failed[2].Name != sample.MachineStall || len(unjudged) != 0 {
		t.Errorf("failed %+v, not judged %q", failed, unjudged)
	}
}

func TestTransactionsAreNotJudgedByTheirRate(t *testing.T) {
	for _, kind := range []suite.Kind{suite.TCPRR, suite.UDPRR} {
		in := good()
		in.Workload = suite.Workload{Kind: kind, Rate: 1e9}
		in.Series = jumps(0.9)
		if failed, flags, unjudged := Judge(in, Default); len(failed) != 0 || len(flags) != 0 || len(unjudged) != 0 {
			t.Errorf("%s: failed %+v, flags %+v, not judged %q", kind, failed, flags, unjudged)
		}
	}
}

// Of a trial of which nothing is known nothing is judged, and it does not count
// as checked.
func TestATrialWithoutFiguresIsNotJudged(t *testing.T) {
	for _, window := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		failed, _, unjudged := Judge(Input{Window: window}, Default)
		if len(failed) != 0 || len(unjudged) != 12 {
			t.Errorf("window %v: failed %+v, not judged %q", window, failed, unjudged)
		}
	}
	if failed, _, unjudged := Judge(Input{Window: 1}, Default); len(failed) != 0 || len(unjudged) != 6 {
		t.Errorf("failed %+v, not judged %q", failed, unjudged)
	}
}

func TestForeignTimeIsAPartOfTheNodesCPUs(t *testing.T) {
	if got, ok := (Side{CPUs: 4, Foreign: new(0.6)}).ForeignPercent(3); !ok || math.Abs(got-5) > 1e-9 {
		t.Errorf("the foreign time is %v %% (%v), want 5 %%", got, ok)
	}
	for _, s := range []Side{{CPUs: 4}, {Foreign: new(0.6)}, {CPUs: 4, Foreign: new(math.Inf(1))}} {
		if got, ok := s.ForeignPercent(3); ok {
			t.Errorf("the foreign time of %+v is %v %%, want unknown", s, got)
		}
	}
}
