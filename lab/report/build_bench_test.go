package report_test

import (
	"io"
	"strconv"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/lab/report"
	"windtunnel/lab/report/export"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/reporttest"
	"windtunnel/lab/report/verdicts"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// large returns the run of reporttest with its samples repeated to n samples.
func large(n int) (sample.Run, suite.Plan, []sample.Sample) {
	const blocks = 10
	run, plan, some := reporttest.Sized(blocks)
	samples := make([]sample.Sample, 0, n)
	for repeat := 0; len(samples) < n; repeat++ {
		for _, s := range some[:min(len(some), n-len(samples))] {
			s.Block += repeat * blocks
			samples = append(samples, s)
		}
	}
	return run, plan, samples
}

func BenchmarkBuild(b *testing.B) {
	for _, n := range []int{1_000, 10_000} {
		run, plan, samples := large(n)
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			for b.Loop() {
				report.Build(run, plan, samples)
			}
		})
	}
}

func BenchmarkWrite(b *testing.B) {
	r := report.Build(large(1_000))
	for name, write := range map[string]func(io.Writer, *model.Report) error{"json": export.WriteJSON, "csv": export.WriteCSV, "benchfmt": export.WriteBenchfmt} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				must.Succeed(b, write(io.Discard, r))
			}
		})
	}
}

func BenchmarkImprecision(b *testing.B) {
	_, plan, samples := large(10_000)
	plan.Stop.Precision = 0.02
	for b.Loop() {
		verdicts.Imprecision(sample.Options{}, plan, samples)
	}
}
