package report_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"charm.land/lipgloss/v2"

	"windtunnel/internal/must"
	"windtunnel/lab/report"
	"windtunnel/lab/report/document"
	"windtunnel/lab/report/export"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/reporttest"
	"windtunnel/lab/report/text"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// steps returns a plan with one scenario for each name, and a ladder over all of them.
func steps(names ...string) (sample.Run, suite.Plan) {
	plan := suite.Plan{Suite: "s", Ladders: []suite.Ladder{{Title: "the way up"}}}
	l := &plan.Ladders[0]
	for _, n := range names {
		id := n + "/stream"
		plan.Scenarios = append(plan.Scenarios, suite.Scenario{ID: id, System: n, Placement: suite.TwoNodes, Workload: suite.Workload{Name: "stream", Kind: suite.TCPStream}})
		l.Steps, l.Names = append(l.Steps, id), append(l.Names, "the "+n)
	}
	return sample.Run{ID: "r", Status: sample.Complete}, plan
}

// costing returns n blocks of a scenario with throughput and the receiver's CPU per
// byte. Both drift from block to block.
func costing(id string, n int, bits, perByte float64) []sample.Sample {
	list := column(id, sample.Throughput, spread(bits, bits, n)...)
	for i := range list {
		drift := 1 + 0.01*float64(i%3)
		list[i].Metrics[sample.Throughput] = bits * drift
		list[i].Metrics[sample.ReceiverCPUPerByte] = perByte + 0.01*float64(i%3)
	}
	return list
}

func TestLadderSaysWhatEachStepAddsAndItsShareOfTheLast(t *testing.T) {
	run, plan := steps("raw", "bridge", "vxlan")
	samples := slices.Concat(costing("raw/stream", 10, 10e9, 0.40), costing("bridge/stream", 10, 9e9, 0.50), costing("vxlan/stream", 10, 9e9, 0.80))
	r := report.Build(run, plan, samples)
	if len(r.Ladders) != 1 || len(r.Ladders[0].Steps) != 3 {
		t.Fatalf("the ladders are %+v, want one of 3 steps", r.Ladders)
	}
	first, bridge, vxlan := &r.Ladders[0].Steps[0], &r.Ladders[0].Steps[1], &r.Ladders[0].Steps[2]
	if first.From != "" || bridge.From != "raw/stream" || vxlan.From != "bridge/stream" || bridge.Name != "the bridge" {
		t.Errorf("from %q, %q, %q, name %q", first.From, bridge.From, vxlan.From, bridge.Name)
	}
	if c := first.Cost(sample.ReceiverCPUPerByte); c == nil || c.Added != nil || c.Ratio != nil || c.Verdict != "" || math.Abs(c.Figure.Median-0.41) > 1e-9 {
		t.Errorf("the first step adds: %+v", c)
	}
	c := bridge.Cost(sample.ReceiverCPUPerByte)
	if math.Abs(c.Added.Median-0.1) > 1e-9 || math.Abs(c.Added.Low-0.1) > 2e-3 || math.Abs(*c.Share-0.1/0.81) > 1e-9 || c.Verdict != model.Differs {
		t.Errorf("the bridge's CPU per byte: added %+v, share %v, %s", c.Added, *c.Share, c.Verdict)
	}
	// With random signs of the blocks, no other comparison has such a clear difference.
	if *c.P != 2.0/1024 || *c.Adjusted != *c.P {
		t.Errorf("p %v, adjusted %v", *c.P, *c.Adjusted)
	}
	if c := vxlan.Cost(sample.ReceiverCPUPerByte); math.Abs(c.Added.Median-0.3) > 1e-9 || math.Abs(*c.Share-0.3/0.81) > 1e-9 || c.Verdict != model.Differs {
		t.Errorf("vxlan's CPU per byte: %+v", c)
	}
	if c := vxlan.Cost(sample.Throughput); c.Verdict != model.Alike || c.Share != nil || c.Added.Median != 0 || *c.P != 1 {
		t.Errorf("vxlan's throughput: %+v", c)
	}
	if c := bridge.Cost(sample.Throughput); math.Abs(c.Ratio.Median-0.9) > 1e-9 || c.Share != nil || c.Verdict != model.Differs {
		t.Errorf("the bridge's throughput: %+v", c)
	}
}

func TestLadderOfRequestResponseHasLatencyAndNoCostPerByte(t *testing.T) {
	r := rigorous(t)
	var got []string
	for _, c := range r.Ladders[1].Steps[1].Costs {
		got = append(got, string(c.Metric))
	}
	want := "transactions_per_s latency_ns_p50 sender_cpu_ns_per_packet receiver_cpu_ns_per_packet"
	if strings.Join(got, " ") != want {
		t.Errorf("costs %q, want %q", got, want)
	}
	if r.Ladders[1].Steps[1].Cost(sample.LatencyP50).Share == nil {
		t.Error("latency adds up, and has no share")
	}
}

func TestALadderAddsTheCostOfAMissingStepToTheNextOne(t *testing.T) {
	run, plan := steps("raw", "bridge", "vxlan")
	run.Skipped = map[string]string{"bridge/stream": "no bridge module"}
	r := report.Build(run, plan, slices.Concat(costing("raw/stream", 8, 10e9, 0.4), costing("vxlan/stream", 8, 8e9, 0.8)))
	top := r.Ladders[0].Steps[2]
	if mid := r.Ladders[0].Steps[1]; mid.From != "" || mid.Costs != nil || top.From != "raw/stream" || top.Cost(sample.ReceiverCPUPerByte).Added == nil {
		t.Errorf("middle %+v, top %+v", mid, top)
	}
	expectNote(t, r, "Ladder “the way up”: the step the bridge has no figures (bridge/stream was skipped: no bridge module).")
	expectNote(t, r, "Ladder “the way up”: the vxlan is measured against raw/stream, so that its cost is also that of the bridge.")
	text := tabled(t, r, text.Options{Width: 100})
	if !strings.Contains(text, "no figures") || !strings.Contains(text, "+ the vxlan") {
		t.Errorf("the table does not show the gap:\n%s", text)
	}
}

func TestALadderWithoutItsFirstStepSaysSo(t *testing.T) {
	run, plan := steps("raw", "bridge")
	r := report.Build(run, plan, costing("bridge/stream", 8, 10e9, 0.4))
	expectNote(t, r, "the step the raw has no figures (raw/stream has not run)")
	expectNote(t, r, "the bridge is the lowest step with figures; what it adds over the raw is not known")
	if said := report.Explain(r).Sections[0].Sentences; len(said) != 1 || said[0] != "No two steps have figures, so the cost of a step is not known." {
		t.Errorf("the sentences are %q, want that the cost of a step is not known", said)
	}
}

func TestALadderOfAScenarioThatThePlanLacksSaysSo(t *testing.T) {
	run, plan := steps("raw", "bridge")
	plan.Ladders[0].Steps[1], plan.Ladders[0].Names = "gone/stream", nil
	r := report.Build(run, plan, costing("raw/stream", 8, 10e9, 0.4))
	expectNote(t, r, "the step gone/stream has no figures (gone/stream is not in the plan)")
}

func TestLadderOfTooFewBlocksClaimsNothing(t *testing.T) {
	run, plan := steps("raw", "bridge")
	for n := 1; n < 6; n++ {
		r := report.Build(run, plan, slices.Concat(costing("raw/stream", n, 10e9, 0.4), costing("bridge/stream", n, 5e9, 0.8)))
		for _, c := range r.Ladders[0].Steps[1].Costs {
			if c.Verdict != model.TooFew || c.P != nil || c.Adjusted != nil || c.Added.Level >= 0.95 {
				t.Errorf("n = %d: %+v", n, c)
			}
		}
		said := explained(r)
		if !strings.Contains(said, ", too few to tell]") {
			t.Errorf("n = %d: %s", n, said)
		}
	}
}

// If both endpoints are on one node, its CPU is not the sender's cost.
func TestLadderComparesNoCPUAcrossPlacements(t *testing.T) {
	run, plan := steps("raw", "bridge")
	plan.Scenarios[1].Placement = suite.Colocated
	r := report.Build(run, plan, slices.Concat(costing("raw/stream", 8, 10e9, 0.4), costing("bridge/stream", 8, 9e9, 0.8)))
	top := &r.Ladders[0].Steps[1]
	if top.Cost(sample.ReceiverCPUPerByte).Added != nil || top.Cost(sample.Throughput).Added == nil {
		t.Errorf("the step is %+v, want an addition of throughput and none of the receiver's CPU", top)
	}
}

func TestLadderTableFitsEveryTerminal(t *testing.T) {
	r := rigorous(t)
	for width := 45; width <= 150; width += 5 {
		for _, line := range strings.Split(tabled(t, r, text.Options{Width: width}), "\n") {
			if w := lipgloss.Width(line); w > width {
				t.Errorf("at %d columns a line has %d: %q", width, w, line)
			}
		}
	}
	narrow, wide := tabled(t, r, text.Options{Width: 45}), tabled(t, r, text.Options{Width: 140})
	for _, part := range []string{"What each step costs: what a stream pays", "+ VXLAN"} {
		if !strings.Contains(narrow, part) || !strings.Contains(wide, part) {
			t.Errorf("no %q", part)
		}
	}
	if !strings.Contains(wide, "last step") || strings.Contains(narrow, "last step") {
		t.Error("the last column does not give way first")
	}
}

func TestALadderMarksInsignificantCostsAndExplainsTheMark(t *testing.T) {
	run, plan := steps("raw", "bridge")
	noisy := func(id string, seed int) []sample.Sample {
		return column(id, sample.Throughput, around(10e9, 0.03, 10, seed)...)
	}
	r := report.Build(run, plan, append(noisy("raw/stream", 0), noisy("bridge/stream", 1)...))
	d := report.Document(r)
	sections := d.Undrawn()
	ladder := sections[slices.IndexFunc(sections, func(s document.Section) bool { return strings.HasPrefix(s.Title, "What each step costs") })]
	if !strings.Contains(rows(ladder)[2], " ~ |") || len(ladder.Notes) != 1 || !strings.HasPrefix(ladder.Notes[0], "~ no difference shows (the bridge, throughput: a difference of ") {
		t.Errorf("the section is %+v, want the mark ~ and its explanation", ladder)
	}
}

func TestLadderAndComparisonOfTheSamePairAreOne(t *testing.T) {
	for seed := range uint64(100) {
		r := report.Build(chance(rand.New(rand.NewPCG(seed, 5))))
		for _, l := range r.Ladders {
			for _, s := range l.Steps {
				for _, cost := range s.Costs {
					for _, c := range r.Comparisons {
						if c.Subject == s.Scenario && c.Baseline == s.From && c.Metric == cost.Metric && cost.Ratio != nil && (c.Verdict != cost.Verdict || c.Ratio != *cost.Ratio || c.Adjusted != cost.Adjusted) {
							t.Errorf("seed %d: the comparison is %+v, the step %+v", seed, c, cost)
						}
					}
				}
			}
		}
	}
}

func TestRigorousRunIsTheSameEachTime(t *testing.T) {
	must.Equal(t, written(t, export.WriteJSON, rigorous(t)), written(t, export.WriteJSON, rigorous(t)))
	_, plan, _ := reporttest.Rigorous()
	if len(plan.Ladders) != 2 || len(plan.Hypotheses) != 5 {
		t.Errorf("%d ladders, %d hypotheses", len(plan.Ladders), len(plan.Hypotheses))
	}
}
