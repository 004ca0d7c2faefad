package report

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"windtunnel/lab/report/reporttest"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// sketched is a stream scenario of ten blocks: throughput, and the CPU per byte
// of the two sides, from and to.
type sketched struct {
	id, system             string
	bits, sender, receiver [2]float64
}

// sketch makes a run of the scenarios with these subjects and baselines.
func sketch(pairs [][2]string, rows ...sketched) (suite.Plan, []sample.Sample) {
	plan := suite.Plan{Systems: reporttest.Systems()}
	var samples []sample.Sample
	for _, r := range rows {
		plan.Scenarios = append(plan.Scenarios, suite.Scenario{
			ID: r.id, System: r.system, Placement: suite.TwoNodes, Workload: suite.Workload{Name: "stream", Kind: suite.TCPStream},
		})
		column := column(r.id, sample.Throughput, spread(r.bits[0], r.bits[1], 10)...)
		for i := range column {
			column[i].Metrics[sample.SenderCPUPerByte] = spread(r.sender[0], r.sender[1], 10)[i]
			column[i].Metrics[sample.ReceiverCPUPerByte] = spread(r.receiver[0], r.receiver[1], 10)[i]
		}
		samples = append(samples, column...)
	}
	for _, p := range pairs {
		plan.Comparisons = append(plan.Comparisons, suite.Comparison{Subject: p[0], Baseline: p[1]})
	}
	return plan, samples
}

// halved is half as fast and twice as dear as the reference.
func halved(id, system string) sketched {
	return sketched{id, system, [2]float64{5e9, 5e9}, [2]float64{0.8, 0.8}, [2]float64{0.6, 0.6}}
}

func reference(id, system string) sketched {
	return sketched{id, system, [2]float64{10e9, 10e9}, [2]float64{0.4, 0.4}, [2]float64{0.3, 0.3}}
}

const halfAndTwice = "'s throughput; the sender spends 2.000× [2.000, 2.000] the CPU per byte and the receiver 2.000× [2.000, 2.000]."

func TestFindingWithinOneSystemNamesWhatDiffersAndOneSubjectASentence(t *testing.T) {
	plan, samples := sketch([][2]string{{"bridge/no-seg", "bridge/stream"}, {"bridge/threads", "bridge/stream"}},
		reference("bridge/stream", "bridge"), halved("bridge/no-seg", "bridge"), halved("bridge/threads", "bridge"))
	want := []string{
		"bridge/no-seg carries 50.0 % [50.0, 50.0] of bridge/stream" + halfAndTwice,
		"bridge/threads carries 50.0 % [50.0, 50.0] of bridge/stream" + halfAndTwice,
	}
	if diff := cmp.Diff(want, sentencesOf(plan, samples)); diff != "" {
		t.Error(diff)
	}
}

func TestFindingOfAnotherWorkloadOfAnotherSystemNamesTheScenarios(t *testing.T) {
	plan, samples := sketch([][2]string{{"vxlan/no-seg", "bridge/stream"}}, reference("bridge/stream", "bridge"), halved("vxlan/no-seg", "vxlan"))
	want := []string{"vxlan/no-seg carries 50.0 % [50.0, 50.0] of bridge/stream" + halfAndTwice}
	if diff := cmp.Diff(want, sentencesOf(plan, samples)); diff != "" {
		t.Error(diff)
	}
}

func TestFindingTooLongForOneSentenceIsOneForEachWorkload(t *testing.T) {
	plan, samples := sketch([][2]string{{"vrouter/stream", "bridge/stream"}, {"vrouter/no-seg", "bridge/no-seg"}},
		reference("bridge/stream", "bridge"), reference("bridge/no-seg", "bridge"),
		halved("vrouter/stream", "vrouter-mpls-udp"), halved("vrouter/no-seg", "vrouter-mpls-udp"))
	want := []string{
		"In stream, vrouter carries 50.0 % [50.0, 50.0] of the bridge" + halfAndTwice,
		"In no-seg, vrouter carries 50.0 % [50.0, 50.0] of the bridge" + halfAndTwice,
	}
	if diff := cmp.Diff(want, sentencesOf(plan, samples)); diff != "" {
		t.Error(diff)
	}
}

// What a workload lacks is said where the workload is, or at the end.
func TestPartsOfALongFindingKeepTheirDoubts(t *testing.T) {
	plan, samples := sketch([][2]string{{"vrouter/stream", "bridge/stream"}, {"vrouter/no-seg", "bridge/no-seg"}, {"vrouter/udp", "bridge/udp"}},
		reference("bridge/stream", "bridge"), reference("bridge/no-seg", "bridge"), reference("bridge/udp", "bridge"),
		halved("vrouter/stream", "vrouter-mpls-udp"), halved("vrouter/no-seg", "vrouter-mpls-udp"), halved("vrouter/udp", "vrouter-mpls-udp"))
	var kept []sample.Sample
	for _, s := range samples {
		if s.Scenario == "vrouter/udp" {
			continue
		}
		if s.Scenario == "vrouter/stream" && s.Block == 3 {
			s.Failure, s.Metrics = &sample.Failure{Kind: sample.ToolHung}, nil
		}
		kept = append(kept, s)
	}
	run := sample.Run{ID: "r", Status: sample.Complete, Skipped: map[string]string{"vrouter/udp": "no BPF"}}
	got := Build(run, plan, kept).Findings
	if len(got) != 2 || !strings.HasPrefix(got[0], "In stream, ") || !strings.HasSuffix(got[0], " (1 trial of vrouter yielded no figures that count.)") ||
		!strings.HasPrefix(got[1], "In no-seg, ") || !strings.HasSuffix(got[1], " (vrouter/udp was skipped.)") {
		t.Errorf("%q", got)
	}
}

func TestWorkloadsOfOneNameAreToldApartByTheirScenarios(t *testing.T) {
	plan, samples := sketch([][2]string{{"vxlan/stream", "bridge/stream"}, {"vxlan/stream-4", "bridge/stream-4"}},
		reference("bridge/stream", "bridge"), reference("bridge/stream-4", "bridge"), halved("vxlan/stream", "vxlan"), halved("vxlan/stream-4", "vxlan"))
	for i := range samples {
		delete(samples[i].Metrics, sample.SenderCPUPerByte)
		delete(samples[i].Metrics, sample.ReceiverCPUPerByte)
	}
	want := []string{"Kernel VXLAN carries 50.0 % [50.0, 50.0] of the bridge's throughput in stream and 50.0 % [50.0, 50.0] in stream-4."}
	if diff := cmp.Diff(want, sentencesOf(plan, samples)); diff != "" {
		t.Error(diff)
	}
}

func TestLongFindingLeavesToTheTableWhatIsNotSure(t *testing.T) {
	slower := sketched{"vxlan/stream", "vxlan", [2]float64{9.9e9, 10.1e9}, [2]float64{0.39, 0.41}, [2]float64{0.29, 0.31}}
	plan, samples := sketch([][2]string{{"vxlan/stream", "bridge/stream"}}, reference("bridge/stream", "bridge"), slower)
	got := sentencesOf(plan, samples)
	if len(got) != 1 || words(got[0]) > mostWords {
		t.Fatalf("%q", got)
	}
	if !strings.HasPrefix(got[0], "Between kernel VXLAN and the bridge no difference shows in throughput, the sender's CPU per byte and the receiver's CPU per byte (a difference of ") || !strings.HasSuffix(got[0], " % or more would have shown).") {
		t.Errorf("%q", got)
	}
}

func TestWhatIsSureIsSaidBeforeWhatIsDearButSuggested(t *testing.T) {
	sure := &contrast{ratios: []contrasted{{Comparison: Comparison{Verdict: Differs, Ratio: Interval{Median: 0.9, N: 10}}}}}
	dear := &contrast{ratios: []contrasted{{Comparison: Comparison{Verdict: Suggested, Ratio: Interval{Median: 0.2, N: 10}}}}}
	if got := surest([]*contrast{dear, dear, dear, dear, sure}); len(got) != mostFindings || got[0] != sure {
		t.Errorf("%v", got)
	}
}

func TestDetectableDifferencesOfManyRatiosAreSaidTogether(t *testing.T) {
	of := func(ratio float64, detectable ...float64) []contrasted {
		var list []contrasted
		for _, d := range detectable {
			c := contrasted{Comparison: Comparison{Ratio: Interval{Median: ratio}, Detectable: &d}}
			if d < 0 {
				c.Detectable = nil
			}
			list = append(list, c)
		}
		return list
	}
	for want, ratios := range map[string][]contrasted{
		" (a difference of 13 to 15 % or more would have shown)":                    of(1, 0.15, 0.13, 0.14),
		" (a difference of 3 to 15 % or more would have shown in 4 of 5 such runs)": of(1.1, 0.15, 0.03),
		" (a difference of 13 % or more would have shown)":                          of(1, 0.131, 0.132, 0),
		" (any difference would have shown)":                                        of(1, 0, 0),
		"":                                                                          of(1, 0.13, -1),
	} {
		if got := together(ratios); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestNamesBeginASentenceWithACapitalOnlyWhereTheyAreWords(t *testing.T) {
	rows := []Scenario{
		{ID: "bridge/stream", System: "bridge"}, {ID: "vrouter/stream", System: "vrouter-mpls-udp"},
		{ID: "vrouter-vxlan-colocated/stream", System: "vrouter-vxlan", Placement: string(suite.Colocated)},
		{ID: "fast/stream", System: "vxlan"}, {ID: "slow/stream", System: "vxlan"}, {ID: "raw/stream", System: "raw"},
	}
	call := (&Report{Scenarios: rows, systems: reporttest.Systems()}).callers()
	for i, want := range []string{"The bridge", "vrouter", "vrouter-vxlan on one node", "fast", "slow", "Raw"} {
		if got := call(&rows[i]).opening(); got != want {
			t.Errorf("%s is %q, want %q", rows[i].ID, got, want)
		}
	}
}

func TestWordsLeaveOutFigures(t *testing.T) {
	if n := words("The bridge carries 56 % [48, 67] of raw's throughput (n = 10); 1.47× more"); n != 8 {
		t.Errorf("%d words", n)
	}
}
