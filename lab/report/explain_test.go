package report_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/lab/profile/folded"
	"windtunnel/lab/report"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/reporttest"
	"windtunnel/lab/sample"
)

func explained(r *model.Report) string {
	var b strings.Builder
	for _, s := range report.Explain(r).Sections {
		b.WriteString(s.Title + "\n  " + strings.Join(s.Sentences, "\n  ") + "\n")
	}
	return b.String()
}

func TestTheExplanationOfALadderHasTheCostOfEachStep(t *testing.T) {
	run, plan := steps("raw", "bridge", "vxlan")
	r := report.Build(run, plan, slices.Concat(costing("raw/stream", 10, 10e9, 0.40), costing("bridge/stream", 10, 9e9, 0.50), costing("vxlan/stream", 10, 9e9, 0.80)))
	got := report.Explain(r).Sections[0].Sentences
	want := []string{
		"The bridge carries 10.0 % less than the raw [10.0, 10.0] and costs the receiver 24.4 % more CPU per byte [24.1, 25.0].",
		"The vxlan costs the receiver 58.8 % more CPU per byte than the bridge [58.3, 60.0]; no difference shows in throughput [0.0, 0.0 %; any difference would have been detected].",
		"Of the receiver's CPU per byte with the vxlan, 0.810 ns/byte, the bridge adds 0.100 and the vxlan 0.300.",
	}
	must.Equal(t, want, got)
}

func TestTheExplanationHasSavingsAndGains(t *testing.T) {
	run, plan := steps("raw", "bridge")
	r := report.Build(run, plan, slices.Concat(costing("raw/stream", 10, 10e9, 0.80), costing("bridge/stream", 10, 12e9, 0.50)))
	got := report.Explain(r).Sections[0].Sentences[0]
	must.Equal(t, "The bridge carries 20.0 % more than the raw [20.0, 20.0] and costs the receiver 37.0 % less CPU per byte [36.8, 37.5].", got)
}

func TestTheExplanationOfStepsWithoutADifferenceHasTheDetectableDifference(t *testing.T) {
	run, plan := steps("raw", "bridge")
	noisy := func(id string, seed int) []sample.Sample {
		return column(id, sample.Throughput, around(10e9, 0.03, 10, seed)...)
	}
	got := explained(report.Build(run, plan, append(noisy("raw/stream", 0), noisy("bridge/stream", 1)...)))
	for _, part := range []string{
		"Between the bridge and the raw no difference shows in throughput [", " % or more would have been detected].",
	} {
		if !strings.Contains(got, part) {
			t.Errorf("lacks %q: %s", part, got)
		}
	}
}

func TestExplanationWithoutLaddersIsOfEveryComparison(t *testing.T) {
	sections := report.Explain(reporttest.Quick()).Sections
	if sections[0].Title != "What it costs" || len(sections[0].Sentences) != 3 || !strings.HasPrefix(sections[0].Sentences[0], "The bridge carries 3.6 % less than raw [") {
		t.Errorf("the first section is %+v, want the 3 costs", sections[0])
	}
	if last := sections[len(sections)-1]; last.Title != "Validity" || !strings.HasPrefix(last.Sentences[0], "47 of 50 attempts count; 3 failed") {
		t.Errorf("the last section is %+v, want the validity of 47 of 50 trials", last)
	}
}

func TestExplanationOfAnEmptyRunSaysThatThereAreNoFindings(t *testing.T) {
	got := explained(report.Build(sample.Run{}, planless(), nil))
	if !strings.Contains(got, "there are no findings") {
		t.Errorf("the explanation is %q, want that there are no findings", got)
	}
}

// profileOf returns an encoded profile of one CPU over a second.
func profileOf(t *testing.T, side string, seconds map[string]float64) sample.Profile {
	t.Helper()
	p := &folded.Profile{Node: "b", Side: side, CPUs: []int{1}, Seconds: 1, Rate: 1000, Clock: "cpu-clock"}
	for category, s := range seconds {
		n := uint64(s * 1000)
		p.Samples += n
		p.Stacks = append(p.Stacks, folded.Stack{Frames: []string{"f"}, Comm: "x", Category: category, Count: n, Nanos: uint64(s * 1e9)})
	}
	data := must.Get(folded.Encode(p))(t)
	return sample.Profile{Side: side, Cores: 0.8, Data: data}
}

func TestProfilesAreMergedAndExplainWhereAStepsCostLies(t *testing.T) {
	run, plan := steps("raw", "bridge")
	samples := slices.Concat(costing("raw/stream", 10, 8e9, 0.40), costing("bridge/stream", 10, 8e9, 0.50))
	for block := range 2 {
		for id, seconds := range map[string]map[string]float64{
			"raw/stream":    {"TCP/IP": 0.3, "GRO": 0.2, folded.Idle: 0.5},
			"bridge/stream": {"TCP/IP": 0.3, "GRO": 0.25, "bridge": 0.1, folded.Idle: 0.35},
		} {
			s := costing(id, 10, 7.6e9, 0.6)[block]
			s.Profiled, s.Profiles = true, []sample.Profile{profileOf(t, "receiver", seconds)}
			samples = append(samples, s)
		}
	}
	r := report.Build(run, plan, samples)
	if len(r.Profiles) != 2 {
		t.Fatalf("%d profiles", len(r.Profiles))
	}
	p := r.Profiles[1]
	if p.Scenario != "bridge/stream" || p.Side != "receiver" || p.Metered != 0.8 || p.Sampled < 0.649 || p.Sampled > 0.651 {
		t.Errorf("%s %s: metered %v, sampled %v", p.Scenario, p.Side, p.Metered, p.Sampled)
	}
	if p.Slowdown == nil || p.Slowdown.N != 2 || p.Slowdown.Median < 0.949 || p.Slowdown.Median > 0.951 {
		t.Errorf("slowdown %+v", p.Slowdown)
	}
	merged, err := folded.Decode(p.Data)
	if err != nil || merged.Seconds != 2 {
		t.Errorf("merged %+v, %v", merged, err)
	}
	// A tenth of a core at 0.955 GB/s is 0.105 ns/byte, a twentieth 0.0524.
	if got := explained(r); !strings.Contains(got, "The profiles show the CPU time that the bridge changes at the receiver: bridge (+0.105 ns/byte) and GRO (+0.0524 ns/byte).") {
		t.Errorf("the explanation is %q, want the changes of bridge and GRO by profile", got)
	}
}

func TestDamagedProfileIsLeftOutWithANote(t *testing.T) {
	run, plan := steps("raw")
	samples := costing("raw/stream", 2, 8e9, 0.4)
	for i := range samples {
		samples[i].Profiled = true
		samples[i].Profiles = []sample.Profile{profileOf(t, "sender", map[string]float64{"GRO": 0.1})}
	}
	samples[1].Profiles[0].Data = samples[1].Profiles[0].Data[:20]
	r := report.Build(run, plan, samples)
	expectNote(t, r, "raw/stream block 1: the sender's profile is left out: ")
	if len(r.Profiles) != 1 || r.Profiles[0].Slowdown != nil {
		t.Errorf("the profiles are %+v, want one without a slowdown", r.Profiles)
	}
}

func TestProfileOfATrialWithoutAFiniteFigureIsLeftOut(t *testing.T) {
	run, plan := steps("raw")
	samples := costing("raw/stream", 1, 8e9, 0.4)
	samples[0].Profiled = true
	samples[0].Profiles = []sample.Profile{profileOf(t, "sender", map[string]float64{"GRO": 0.1})}
	samples[0].Metrics[sample.Throughput] = math.NaN()
	if r := report.Build(run, plan, samples); len(r.Profiles) != 0 {
		t.Errorf("the profiles are %+v, want none", r.Profiles)
	}
}
