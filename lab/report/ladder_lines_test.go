package report_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/lab/report"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/tables"
	"windtunnel/lab/sample"
)

// number parses a figure that a ladder prints.
func number(t *testing.T, text string) float64 {
	t.Helper()
	return must.Get(strconv.ParseFloat(strings.NewReplacer("−", "-", "+", "", ",", "").Replace(text), 64))(t)
}

// In ladders of noisy and drifting blocks, the figure of a step is the figure before
// it plus the addition, exactly as printed. The addition has the ratio's direction.
func TestALaddersDigitsAddUp(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	added := 0
	for range 300 {
		run, plan := steps("raw", "bridge", "vxlan")
		var samples []sample.Sample
		figure := math.Exp(12 * rng.Float64())
		for _, s := range plan.Scenarios {
			figure *= math.Exp(0.6 * rng.Float64())
			some := costing(s.ID, 10, 1e7*figure, figure)
			for i := range some {
				noise := math.Exp(0.2*rng.NormFloat64() + 0.1*float64(i%5))
				some[i].Metrics[sample.Throughput] /= noise
				some[i].Metrics[sample.ReceiverCPUPerByte] *= noise
			}
			samples = append(samples, slices.Delete(some, 0, rng.IntN(4))...)
		}
		r := report.Build(run, plan, samples)
		for _, m := range []sample.Metric{sample.Throughput, sample.ReceiverCPUPerByte} {
			lines, scale := tables.Lines(&r.Ladders[0], m)
			for i, line := range lines {
				_, fraction, _ := strings.Cut(line.Figure, ".")
				_, first, _ := strings.Cut(lines[0].Figure, ".")
				if len(fraction) != len(first) {
					t.Fatalf("%s and %s have different numbers of decimals", lines[0].Figure, line.Figure)
				}
				if line.Added == "" {
					continue
				}
				added++
				sum := number(t, lines[i-1].Figure) + number(t, line.Added)
				if math.Abs(sum-number(t, line.Figure)) > 1e-9*sum {
					t.Errorf("%s plus %s is not %s %s", lines[i-1].Figure, line.Added, line.Figure, scale.Unit)
				}
				if c := r.Ladders[0].Steps[i].Cost(m); (number(t, line.Added) > 0) != (c.Ratio.Median > 1) || c.Verdict == model.Alike {
					t.Errorf("%s is added beside a ratio of %v (%s)", line.Added, c.Ratio.Median, c.Verdict)
				}
			}
		}
	}
	if added < 300 {
		t.Errorf("only %d steps add anything", added)
	}
}

// The medians fall from 502 ns to 483 ns, but the ratio within blocks is 1.12:
// blocks were lost, and the machine drifted.
func TestALadderAddsNothingWhereMediansAndRatioDisagree(t *testing.T) {
	run, plan := steps("raw", "bridge")
	var samples []sample.Sample
	for i := range 20 {
		per := 0.400
		if i >= 10 {
			per = 0.502
		}
		s := column("raw/stream", sample.ReceiverCPUPerByte, per)[0]
		if s.Block = i; i != 9 {
			samples = append(samples, s)
		}
		o := column("bridge/stream", sample.ReceiverCPUPerByte, 1.12*per)[0]
		if o.Block = i; i < 11 {
			samples = append(samples, o)
		}
	}
	r := report.Build(run, plan, samples)
	c := r.Ladders[0].Steps[1].Cost(sample.ReceiverCPUPerByte)
	if c.Verdict != model.Differs || c.Ratio.Median < 1.11 || c.Added.Median >= 0 {
		t.Fatalf("%+v, added %+v", c, c.Added)
	}
	lines, _ := tables.Lines(&r.Ladders[0], sample.ReceiverCPUPerByte)
	if lines[1].Added != "" || lines[1].Share != "" {
		t.Errorf("the line is %+v, want no addition and no share", lines[1])
	}
}
