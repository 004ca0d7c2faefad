package quantity_test

import (
	"strings"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/sample"
)

func TestFiguresHaveThreeDigitsAndBoundsThatDiffer(t *testing.T) {
	for _, c := range []struct {
		metric      sample.Metric
		iv          quantity.Interval
		median, rng string
	}{
		{sample.Throughput, quantity.Interval{Median: 11.04e9, Low: 10.4e9, High: 11.1e9, N: 6}, "11.0", "[10.4, 11.1]"},
		{sample.Throughput, quantity.Interval{Median: 9.512e9, Low: 9.509e9, High: 9.516e9, N: 6}, "9.51", "[9.51, 9.52]"},
		{sample.Throughput, quantity.Interval{Median: 9.512e9, Low: 9.511e9, High: 9.513e9, N: 6}, "9.512", "[9.511, 9.513]"},
		{sample.Throughput, quantity.Interval{Median: 250e3, Low: 250e3, High: 250e3, N: 1}, "250", ""},
		{sample.SenderCPU, quantity.Interval{Median: 99.998, Low: 99.997, High: 100, N: 2}, "100", "[100, 100]"},
		{sample.SenderCPUPerByte, quantity.Interval{Median: 0.05678, Low: 0.05, High: 0.06, N: 6}, "0.0568", "[0.0500, 0.0600]"},
		{sample.LossRatio, quantity.Interval{Median: 0.0123, Low: 0.01, High: 0.02, N: 6}, "1.23", "[1.00, 2.00]"},
		{sample.Retransmits, quantity.Interval{Median: 123456, Low: 100000, High: 200000, N: 6}, "123,456", "[100,000, 200,000]"},
	} {
		median, rng := quantity.ScaleOf(c.metric, c.iv.Median).Figure(c.iv)
		if median != c.median || rng != c.rng {
			t.Errorf("%s of %v is %q %q, want %q %q", c.metric, c.iv.Median, median, rng, c.median, c.rng)
		}
	}
}

func TestPrintPutsTheUnitWhereItBelongs(t *testing.T) {
	for _, c := range []struct {
		metric sample.Metric
		v      float64
		want   string
	}{
		{sample.Throughput, 9.996e9, "10.0 Gbit/s"}, {sample.Throughput, 999.4e6, "999 Mbit/s"}, {sample.Throughput, 999.6e6, "1.00 Gbit/s"}, {sample.Throughput, 0, "0 bit/s"}, {sample.Transactions, 830, "830/s"},
		{sample.Transactions, 27_400, "27.4 k/s"}, {sample.LatencyP50, 31_000, "31.0 µs"}, {sample.MSS, 1448, "1450 B"},
		{sample.SegmentsPerSKB, 22.5, "22.5"}, {"unknown", 1.5, "1.50"},
	} {
		if got := quantity.ScaleOf(c.metric, c.v).Print(c.v); got != c.want {
			t.Errorf("%s %v is %q, want %q", c.metric, c.v, got, c.want)
		}
	}
}

// A printed ratio must not contradict the verdict beside it, or its target.
func TestARatioDoesNotReadAsALimitThatItIsNot(t *testing.T) {
	for _, c := range []struct {
		iv     quantity.Interval
		limits []float64
		want   string
	}{
		{quantity.Interval{Median: 1.06, Low: 1.0031, High: 1.10, N: 9}, nil, "1.060 [1.003, 1.100]"},
		{quantity.Interval{Median: 1.06, Low: 0.9969, High: 1.10, N: 9}, nil, "1.060 [0.997, 1.100]"},
		{quantity.Interval{Median: 1.22, Low: 1, High: 1.4, N: 9}, nil, "1.22 [1.00, 1.40]"},
		{quantity.Interval{Median: 1.001, Low: 0.96, High: 1.04, N: 9}, nil, "1.00 [0.96, 1.04]"},
		{quantity.Interval{Median: 0.97963, Low: 0.95, High: 0.9997, N: 12}, []float64{0.98}, "0.9796 [0.9500, 0.9997]"},
		{quantity.Interval{Median: 1.0335, Low: 1.01, High: 1.06, N: 12}, []float64{1.03}, "1.034 [1.010, 1.060]"},
		{quantity.Interval{Median: 1.0335, Low: 1.01, High: 1.06, N: 1}, nil, "1.03"},
	} {
		median, bounds := quantity.Ratio(c.iv, c.limits...)
		must.Equal(t, c.want, strings.TrimSpace(median+" "+bounds))
	}
}
