package drawings

import (
	"math"
	"slices"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/sample"
)

func TestMedianTrialIsTheOneNearestTheMedian(t *testing.T) {
	row := &model.Scenario{Throughput: &quantity.Interval{Median: 10}}
	for i, v := range []float64{30, 11, 9.5, 2} {
		row.Samples = append(row.Samples, sample.Sample{Block: i, Metrics: sample.Metrics{sample.Throughput: v}})
	}
	row.Samples = append(row.Samples, sample.Sample{Block: 4, Failure: &sample.Failure{}, Metrics: sample.Metrics{sample.Throughput: 10}})
	if got := medianTrial(row, row.Counting()); got == nil || got.Block != 2 {
		t.Errorf("the median trial is %+v, want block 2", got)
	}
	if medianTrial(row, nil) != nil {
		t.Error("no trials have a median trial")
	}
}

func TestOfABlockTheLastAttemptUnderValidConditionsCounts(t *testing.T) {
	gates := []sample.Gate{{Name: sample.Steal}}
	row := &model.Scenario{Samples: []sample.Sample{
		{Block: 1, Attempt: 1}, {Block: 1}, {Block: 0, Failure: &sample.Failure{}}, {Block: 0, Attempt: 1, Failure: &sample.Failure{}},
		{Block: 2, Attempt: 1, Gates: gates}, {Block: 2}, {Block: 3, Gates: gates}, {Block: 4, Profiled: true},
	}}
	got := row.Counting()
	if len(got) != 2 || got[0].Block != 1 || got[0].Attempt != 1 || got[1].Block != 2 || got[1].Attempt != 0 {
		t.Errorf("%d samples count, want block 1's second and block 2's first attempt: %+v", len(got), got)
	}
}

func TestKeptTrialsAreSpreadOverTheRunWithTheMedianAmongThem(t *testing.T) {
	var all []*sample.Sample
	for i := range 100 {
		all = append(all, &sample.Sample{Block: i})
	}
	for _, median := range []int{0, 37, 99} {
		got := spread(all, all[median], 10)
		if len(got) != 10 || !slices.Contains(got, all[median]) {
			t.Fatalf("%d kept, median %d among them: %v", len(got), median, slices.Contains(got, all[median]))
		}
		for i := 1; i < len(got); i++ {
			if gap := got[i].Block - got[i-1].Block; gap <= 0 || gap > 20 {
				t.Errorf("median %d: a gap of %d blocks between kept trials", median, gap)
			}
		}
	}
}

func TestThinningKeepsTheMean(t *testing.T) {
	points := make([]sample.Point, 1000)
	sum := 0.0
	for i := range points {
		points[i] = sample.Point{At: float64(i), Bits: float64(i * i % 71), SenderCPU: 50}
		sum += points[i].Bits
	}
	got := steps(points, 250)
	if len(got) != 250 || got[1].At != 4 || got[7].SenderCPU != 50 {
		t.Fatalf("%d steps, want 250 of four points each", len(got))
	}
	mean := 0.0
	for _, p := range got {
		mean += p.Bits / 250
	}
	if math.Abs(mean-sum/1000) > 1e-9 {
		t.Errorf("the mean is %v, was %v", mean, sum/1000)
	}
	must.Equal(t, 1000, len(steps(points, 1000)))
}

func TestDigitsRoundToWhatAScreenShows(t *testing.T) {
	for v, want := range map[float64]float64{0: 0, 11234567890: 11230000000, 0.00123456: 0.001235, -98.765: -98.77, 1e-320: 1e-320} {
		if got := digits(v, 4); math.Abs(got-want) > math.Abs(want)*1e-12 {
			t.Errorf("%v rounds to %v, want %v", v, got, want)
		}
	}
}
