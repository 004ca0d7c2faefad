package sample

import (
	"math"
	"testing"

	"windtunnel/internal/must"
)

func TestOfEachBlockTheLastAttemptThatCountsIsTaken(t *testing.T) {
	hung := &Failure{Kind: ToolHung}
	samples := []*Sample{
		{Block: 1, Attempt: 0}, {Block: 0, Attempt: 1, Failure: hung}, {Block: 0, Attempt: 0},
		{Block: 1, Attempt: 1}, {Block: 2, Gates: []Gate{{Name: Steal}}}, {Block: 1, Attempt: 2, Profiled: true},
	}
	got := Counting(samples)
	if len(got) != 2 || got[0] != samples[2] || got[1] != samples[3] {
		t.Errorf("the samples that count are %+v, want the last two", got)
	}
	for i, want := range map[int]string{0: "", 1: "tool-hung", 4: "steal"} {
		if got := samples[i].Cause(); got != want {
			t.Errorf("sample %d: cause %q, want %q", i, got, want)
		}
	}
}

func TestCleanLeavesOutValuesThatAreNotFiniteWithAWarning(t *testing.T) {
	dirty := Sample{
		Metrics: Metrics{Throughput: 1, RTT: math.NaN(), Drops: math.Inf(1)},
		Series:  []Point{{At: 1, Bits: 2}, {At: 2, Bits: math.Inf(-1)}},
		Gates:   []Gate{{Name: Steal, Value: math.NaN(), Limit: 2, Unit: "%", Message: "NaN % of 2 %"}},
	}
	got, left := dirty.Clean()
	want := Sample{Metrics: Metrics{Throughput: 1}, Series: dirty.Series[:1], Gates: []Gate{{Name: Steal, Message: "NaN % of 2 %"}}}
	must.Equal(t, want, got)
	wantLeft := []string{"drops was +Inf and is left out", "tcp_rtt_ns was NaN and is left out", "1 of 2 points of the series were not finite numbers and are left out"}
	must.Equal(t, wantLeft, left)
	if len(dirty.Metrics) != 3 || len(dirty.Series) != 2 || dirty.Gates[0].Unit != "%" {
		t.Errorf("the argument was changed: %+v", dirty)
	}
}

func TestACPUMetricOfAGroupNeedsASide(t *testing.T) {
	for m, want := range map[Metric]string{
		GroupCores("sender", "cilium"): "sender CPU of cilium", GroupCores("receiver", "a_b/c"): "receiver CPU of a_b/c",
		GroupCores("", "cilium"): "", GroupCores("x", "y"): "", GroupCores("sender", ""): "",
	} {
		if info, ok := Describe(m); ok != (want != "") || info.Label != want {
			t.Errorf("%s: %q, %t; want %q", m, info.Label, ok, want)
		}
	}
}
