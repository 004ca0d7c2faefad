package condition

import (
	"math"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/lab/sample"
)

// tenths makes slices of 100 ms, one for each rate.
func tenths(bits ...float64) []sample.Point {
	points := make([]sample.Point, len(bits))
	for i, b := range bits {
		points[i] = sample.Point{At: float64(i+1) / 10, Seconds: 0.1, Bits: b, SenderCPU: b / 2, ReceiverCPU: 50, CPUDistance: 60, SenderMemoryCopy: 80e9, ReceiverMemoryCopy: 90e9}
	}
	return points
}

func TestInsideLeavesOutSlicesAcrossTheEdges(t *testing.T) {
	points := []sample.Point{{At: 0.05, Seconds: 0.1}, {At: 0.15, Seconds: 0.1}, {At: 0.25, Seconds: 0.1}, {At: 0.35, Seconds: 0.1}}
	got := Inside(points, 0.3)
	if len(got) != 2 || got[0].At != 0.15 || &got[1] != &points[2] {
		t.Errorf("the points inside are %+v, want 2 from 0.15 s on", got)
	}
	if got := Inside(nil, 1); len(got) != 0 {
		t.Errorf("the points inside of none are %+v, want none", got)
	}
}

func TestFiguresOfAWholeWindowAreUnchangedToTheLastBit(t *testing.T) {
	ms := sample.Metrics{sample.Throughput: 1.1e9, sample.SenderCPU: 33.3, sample.SenderCPUPerByte: 0.7, sample.Drops: 3}
	Narrow(ms, tenths(1e9, 1.2e9))
	for m, want := range (sample.Metrics{sample.Throughput: 1.1e9, sample.SenderCPU: 33.3, sample.SenderCPUPerByte: 0.7, sample.Drops: 3,
		sample.KeptSlices: 1, sample.CPUDistance: 60, sample.MemoryCopy: 85e9}) {
		if ms[m] != want {
			t.Errorf("%s is %v, want %v", m, ms[m], want)
		}
	}
}

// Half of the slices were slow and are left out.
func TestFiguresAreOfTheKeptSlices(t *testing.T) {
	points := tenths(10, 4, 10, 4)
	for _, i := range []int{1, 3} {
		points[i].LeftOut, points[i].CPUDistance = sample.DistantSlice, 340
	}
	points[0].CPUDistance = 50
	// The tool's own window was a little longer, and said 8 for a mean of 7.
	ms := sample.Metrics{
		sample.Throughput: 8, sample.Transactions: 80, sample.SenderCPU: 3.5, sample.ReceiverCPU: 50,
		sample.SenderCPUPerByte: 0.5, sample.ReceiverCPUPerByte: 7, sample.WindowSeconds: 0.4, sample.BytesInWindow: 2.8, sample.Retransmits: 6,
	}
	Narrow(ms, points)
	for m, want := range (sample.Metrics{
		sample.Throughput: 8 * 10. / 7, sample.Transactions: 80 * 10. / 7, sample.SenderCPU: 5, sample.ReceiverCPU: 50,
		sample.SenderCPUPerByte: 0.5, sample.ReceiverCPUPerByte: 7 * 0.7, sample.WindowSeconds: 0.4, sample.BytesInWindow: 2.8, sample.Retransmits: 6,
		sample.KeptSlices: 0.5, sample.CPUDistance: 55, sample.CPUDistanceLow: 50, sample.CPUDistanceHigh: 60,
	}) {
		if math.Abs(ms[m]-want) > 1e-9 {
			t.Errorf("%s is %v, want %v", m, ms[m], want)
		}
	}
}

// The figures are of slices without steal, and so is the steal that they show.
func TestSlicesLeftOutHaveNoSteal(t *testing.T) {
	points := tenths(10, 4)
	points[1].LeftOut, points[1].Steal = sample.StolenSlice, 20
	ms := sample.Metrics{sample.SenderStealCPU: 10, sample.ReceiverStealCPU: 0}
	Narrow(ms, points)
	must.Equal(t, 0, ms[sample.SenderStealCPU])
}

func TestFiguresDoNotChangeIfNoSliceIsKept(t *testing.T) {
	points := tenths(1)
	points[0].LeftOut = sample.StolenSlice
	ms := sample.Metrics{sample.Throughput: 1}
	Narrow(ms, points)
	if ms[sample.Throughput] != 1 || len(ms) != 1 {
		t.Errorf("the metrics are %v, want the throughput 1 only", ms)
	}
}

// Figures that follow from others keep to them.
func TestScaledFiguresAgree(t *testing.T) {
	ms := sample.Metrics{sample.Throughput: 8e9, sample.HostThroughput: 2e9, sample.SenderCPUPerByte: 0.5, sample.ReceiverCPUPerByte: 0.4}
	ms.SetCapacity()
	Scale(ms, 2, 1, 4)
	must.Equal(t, 4e9, ms[sample.HostThroughput])
	must.Equal(t, 1e10, ms[sample.Capacity])
}

// The fabric's bits are those of the load. Transactions beside a load, or with a fixed pace, must not be scaled with them.
func TestTransactionsBesideALoadAreNotScaled(t *testing.T) {
	for _, extra := range []sample.Metric{sample.LoadThroughput, sample.OfferedRequests} {
		points := tenths(9e9, 6e9)
		points[1].LeftOut = sample.DistantSlice
		ms := sample.Metrics{sample.Transactions: 5000, extra: 7.5e9}
		Narrow(ms, points)
		want := map[sample.Metric]float64{sample.LoadThroughput: 9e9, sample.OfferedRequests: 7.5e9}[extra]
		if ms[sample.Transactions] != 5000 || math.Abs(ms[extra]/want-1) > 1e-9 {
			t.Errorf("%s is %g and the transactions are %g/s, want %g and 5000/s", extra, ms[extra], ms[sample.Transactions], want)
		}
	}
}
