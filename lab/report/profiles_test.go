package report_test

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/lab/profile/folded"
	"windtunnel/lab/report"
	"windtunnel/lab/report/profiles"
	"windtunnel/lab/report/text"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// profiledRun returns n blocks of a stream with and without the profiler. With the
// profiler the stream has 0.97 of its rate. Copying uses 0.3 cores, the bridge 0.1.
func profiledRun(t *testing.T, n int) (suite.Plan, []sample.Sample) {
	t.Helper()
	plan := suite.Plan{Suite: "p", Nodes: 2, Trials: n, Scenarios: []suite.Scenario{{
		ID: "bridge/stream", System: "bridge", Placement: suite.TwoNodes, Workload: suite.Workload{Name: "stream", Kind: suite.TCPStream},
	}}}
	data := must.Get(folded.Encode(&folded.Profile{
		Node: "a", Side: "sender", CPUs: []int{0}, Seconds: 2, Rate: 499, Clock: "cpu-clock", Samples: 998,
		Stacks: []folded.Stack{
			{Frames: []string{"send", "copy_k" + folded.KernelSuffix}, Comm: "tool", Category: "copy", Count: 299, Nanos: 600e6},
			{Frames: []string{"send", "br" + folded.KernelSuffix}, Comm: "tool", Category: "bridge", Count: 100, Nanos: 200e6},
			{Frames: []string{"wire" + folded.KernelSuffix}, Comm: "tool", Category: folded.Wire, Count: 100, Nanos: 200e6},
			{Frames: []string{"idle" + folded.KernelSuffix}, Comm: "swapper", Category: folded.Idle, Count: 499, Nanos: 1000e6},
		},
	}))(t)
	var samples []sample.Sample
	for block := range n {
		rate := 8e9 + 1e7*float64(block)
		samples = append(samples,
			sample.Sample{Scenario: "bridge/stream", Block: block, Metrics: sample.Metrics{sample.Throughput: rate}},
			sample.Sample{
				Scenario: "bridge/stream", Block: block, Profiled: true, Metrics: sample.Metrics{sample.Throughput: 0.97 * rate},
				Profiles: []sample.Profile{{Side: "sender", Cores: 0.41, Data: data}},
			})
	}
	return plan, samples
}

func TestProfilesOfTrialsAreMergedAndCountInNoFigure(t *testing.T) {
	plan, samples := profiledRun(t, 8)
	// A trial that failed a gate: its profile must be left out.
	samples[15].Gates = []sample.Gate{{Name: sample.ForeignCPU}}
	r := report.Build(sample.Run{Status: sample.Complete}, plan, samples)
	if len(r.Profiles) != 1 {
		t.Fatalf("%d profiles, want the sender's", len(r.Profiles))
	}
	p := r.Profiles[0]
	data := must.Get(folded.Decode(p.Data))(t)
	if data.Samples != 7*998 || data.Seconds != 14 {
		t.Errorf("%d samples over %v s, want those of 7 trials", data.Samples, data.Seconds)
	}
	if math.Abs(p.Sampled-0.4) > 1e-9 || math.Abs(p.Metered-0.41) > 1e-9 {
		t.Errorf("sampled %v cores and metered %v, want 0.4 (without wire and idle) and 0.41", p.Sampled, p.Metered)
	}
	if want := 0.97 * (8e9 + 3e7) / 8; math.Abs(p.Bytes/want-1) > 1e-9 {
		t.Errorf("%v bytes/s, want %v", p.Bytes, want)
	}
	if p.Slowdown == nil || math.Abs(p.Slowdown.Median-0.97) > 0.002 || p.Slowdown.N != 7 {
		t.Errorf("slowdown %+v, want 0.97 of 7 blocks", p.Slowdown)
	}
	if s := r.Scenarios[0]; s.Trials != 8 || s.Throughput.Median != 8e9+3.5e7 {
		t.Errorf("%d trials, %v bit/s: the profiled trials are in the figures", s.Trials, s.Throughput.Median)
	}
}

func TestTheTableOfAProfileAddsUpBesideTheMeter(t *testing.T) {
	plan, samples := profiledRun(t, 6)
	r := report.Build(sample.Run{Status: sample.Complete}, plan, samples)
	var b bytes.Buffer
	must.Succeed(t, text.Write(&b, profiles.Document(r), text.Options{Width: 100}))
	rows := map[string][]string{}
	var order []string
	for line := range strings.Lines(b.String()) {
		for _, name := range []string{"copy", "bridge", folded.Wire, "idle", "busy, by the samples", "busy, by the meter"} {
			if rest, ok := strings.CutPrefix(line, name+" "); ok {
				rows[name] = strings.Fields(rest)
				order = append(order, name)
			}
		}
	}
	if got, want := strings.Join(order, "; "), "copy; bridge; "+folded.Wire+"; idle; busy, by the samples; busy, by the meter"; got != want {
		t.Errorf("rows: %s\nwant: %s\n%s", got, want, &b)
	}
	// 0.3 cores over 0.97 × 8.025 Gbit/s are 0.308 ns/byte.
	for name, want := range map[string]string{"copy": "0.300 75.0 0.308 1794", "bridge": "0.100 25.0 0.103 600", folded.Wire: "0.100 0.103 600", "idle": "0.500 0.514 2994", "busy, by the samples": "0.400 100.0 0.411", "busy, by the meter": "0.410 102.5 0.421"} {
		if got := strings.Join(rows[name], " "); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if !strings.Contains(b.String(), "ran at 97.0 % [97.0, 97.0] of its rate, n = 6") {
		t.Errorf("the table lacks the cost of the profiler:\n%s", &b)
	}
}

func TestAProfileThatCannotBeReadIsLeftOutWithANote(t *testing.T) {
	plan, samples := profiledRun(t, 2)
	for i := range samples {
		for j := range samples[i].Profiles {
			samples[i].Profiles[j].Data = "damaged"
		}
	}
	r := report.Build(sample.Run{Status: sample.Complete}, plan, samples)
	if len(r.Profiles) != 0 || !strings.Contains(strings.Join(r.Notes, " "), "profile is left out") {
		t.Errorf("%d profiles, notes %q", len(r.Profiles), r.Notes)
	}
	var b bytes.Buffer
	if err := text.Write(&b, profiles.Document(r), text.Options{}); err != nil || b.Len() != 0 {
		t.Errorf("the profiles of a run without profiles: %v, %s; want nothing", err, &b)
	}
}
