package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"

	"windtunnel/internal/pause"
	"windtunnel/lab/probe"
	"windtunnel/lab/report"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/text"
	"windtunnel/lab/sample"
	"windtunnel/lab/testbed"
)

// rigor measures the effect of a disturbed machine on a ratio, the duration of the
// analysis, and the cost of the profiler.
func (b *session) rigor() error {
	for _, measure := range []func() error{b.disturbed, b.analysis, b.profiler} {
		if err := measure(); err != nil {
			return err
		}
	}
	return nil
}

// disturbed runs raw and bridge on a quiet machine. Then it runs them again while
// another process uses the receiving node's CPU for a third of the run.
func (b *session) disturbed() error {
	args := []string{"quick", "--scenario", "raw/stream,bridge/stream"}
	quiet, err := b.suite("quiet", args...)
	if err != nil {
		return err
	}
	took := quiet.Run.Finished.Sub(quiet.Run.Started)
	layout, err := testbed.PlanCPUs(probe.Probe().UsableCPUs(), 2)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		hog(ctx, layout.Nodes[1][0], took/3, took/3)
	}()
	noisy, err := b.suite("noisy", args...)
	cancel()
	<-ended
	if err != nil {
		return err
	}
	before, after := quiet.Ratio("bridge/stream", sample.Throughput), noisy.Ratio("bridge/stream", sample.Throughput)
	v := noisy.Validity
	what := fmt.Sprintf("a third of the run beside a CPU hog: bridge / raw in throughput against the quiet run (%d of %d trials did not count)", v.Gated, v.Attempts)
	if after == nil || after.Verdict == model.TooFew {
		b.row(what, "within 3 %, or said", "the run says that it could not measure", true)
		return nil
	}
	if before == nil {
		return fmt.Errorf("the quiet run has no ratio")
	}
	off := after.Ratio.Median/before.Ratio.Median - 1
	b.row(what, "within 3 %, or said", fmt.Sprintf("%.3f against %.3f: %+.1f %%", after.Ratio.Median, before.Ratio.Median, 100*off), math.Abs(off) <= 0.03)
	return nil
}

// hog waits for the time after. Then it keeps a CPU busy for the time long.
func hog(ctx context.Context, cpu int, after, long time.Duration) {
	if pause.For(ctx, after) != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, long)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", "while :; do :; done")
	if err := cmd.Start(); err != nil {
		return
	}
	var set unix.CPUSet
	set.Set(cpu)
	// Ignore the error: without pinning no gate fails, and the row shows it.
	_ = unix.SchedSetaffinity(cmd.Process.Pid, &set)
	_ = cmd.Wait()
}

// analysis measures the time to compute the figures of 10,000 samples, without
// reading the store.
func (b *session) analysis() error {
	db, _, err := b.makeStore("tenthousand", 1250)
	if err != nil {
		return err
	}
	data, err := newestRun(db, "")
	if err != nil {
		return err
	}
	start := time.Now()
	r := report.Build(data.Run, data.Plan, data.Samples)
	if err := text.Write(io.Discard, report.Document(r), text.Options{}); err != nil {
		return err
	}
	took := time.Since(start).Seconds()
	b.row(fmt.Sprintf("analysis of %d samples with %d comparisons", len(data.Samples), len(r.Comparisons)), "< 2 s", fmt.Sprintf("%.2f s", took), took < 2)
	return nil
}

// profiler measures by how much the profiler slows the traffic down. It also compares the
// sum of the profile with the CPU meter's figure.
func (b *session) profiler() error {
	r, err := b.stored("profile", []string{"profile", "quick", "--scenario", "bridge,vxlan", "--trials", "10"})
	if err != nil {
		return err
	}
	if len(r.Profiles) == 0 {
		return errors.New("the run has no profile")
	}
	for _, p := range r.Profiles {
		if p.Slowdown != nil && p.Side == "sender" {
			lost := 1 - p.Slowdown.Median
			b.row(fmt.Sprintf("profiler at its default rate, %s: lost of the rate", p.Scenario), "< 5 %", fmt.Sprintf("%.1f %% [%.1f, %.1f]", 100*lost, 100*(1-p.Slowdown.High), 100*(1-p.Slowdown.Low)), lost < 0.05)
		}
		off := p.Sampled/p.Metered - 1
		b.row(fmt.Sprintf("profile of %s, %s: busy cores against the meter's", p.Scenario, p.Side), "within 3 %", fmt.Sprintf("%.3f against %.3f: %+.1f %%", p.Sampled, p.Metered, 100*off), math.Abs(off) <= 0.03)
	}
	return nil
}
