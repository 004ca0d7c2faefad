package main

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"windtunnel/lab/condition"
	"windtunnel/lab/cpudistance"
	"windtunnel/lab/probe"
	"windtunnel/lab/report/sentences"
	"windtunnel/lab/sample"
	"windtunnel/lab/stats"
)

// distances measures how much the trials of one stream differ at one CPU distance, and
// the cost of reading the distance.
func (b *session) distances() error {
	if err := b.repeats(); err != nil {
		return err
	}
	if err := b.probeCPU(); err != nil {
		return err
	}
	return b.probeTraffic()
}

// repeats runs the bridge 12 times for 1 s.
func (b *session) repeats() error {
	r, err := b.suite("repeats", "quick", "--scenario", "bridge/stream", "--trials", "12")
	if err != nil {
		return err
	}
	s, ok := find(r, "bridge/stream")
	if !ok {
		return fmt.Errorf("bridge/stream has no figures: %s", s.Skipped)
	}
	for _, m := range []sample.Metric{sample.Throughput, sample.SenderCPUPerByte, sample.ReceiverCPUPerByte} {
		v := values(s, m)
		cv, _, err := stats.CoefficientOfVariation(v)
		if err != nil {
			return err
		}
		b.row(fmt.Sprintf("bridge, %d × 1 s: coefficient of variation of %s", len(v), m), "≤ 3 %", fmt.Sprintf("%.1f %%", 100*cv), cv <= 0.03)
	}
	for _, line := range sentences.Conditions(r) {
		b.note(line, "")
	}
	return nil
}

// probeCPU measures the CPU time of reading the distance as in a trial, but without
// traffic.
func (b *session) probeCPU() error {
	cpus := probe.Probe().UsableCPUs()
	if len(cpus) < 2 {
		return fmt.Errorf("the distance of CPUs needs two; this machine has %d", len(cpus))
	}
	const length = 10 * time.Second
	before, err := processCPU()
	if err != nil {
		return err
	}
	if _, err := cpudistance.Watch(cpus[0], cpus[1], length, 100*time.Millisecond); err != nil {
		return err
	}
	after, err := processCPU()
	if err != nil {
		return err
	}
	share := float64(after-before) / float64(length)
	b.row("reading the distance every 100 ms: CPU time of both threads together", "≤ 0.3 % of a CPU", fmt.Sprintf("%.2f %%", 100*share), share <= 0.003)
	return nil
}

// processCPU returns the CPU time of this process.
func processCPU() (time.Duration, error) {
	var ts unix.Timespec
	err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &ts)
	return time.Duration(ts.Nano()), err
}

// probeTraffic runs the bridge alternately with and without the probe.
func (b *session) probeTraffic() error {
	pairs := b.rounds(12)
	var with, without []float64
	for i := range pairs {
		for _, choice := range []condition.Choice{condition.Any, condition.Off} {
			r, err := b.suite(fmt.Sprintf("probe-%s-%d", choice, i), "quick", "--scenario", "bridge/stream", "--trials", "2", "--gates", "warn", "--cpu-distance", string(choice))
			if err != nil {
				return err
			}
			s, ok := find(r, "bridge/stream")
			if !ok {
				return fmt.Errorf("bridge/stream has no figures: %s", s.Skipped)
			}
			if choice == condition.Any {
				with = append(with, s.Throughput.Median)
			} else {
				without = append(without, s.Throughput.Median)
			}
		}
	}
	e, _, err := stats.Ratio(with, without, stats.Level)
	if err != nil {
		return err
	}
	b.row(fmt.Sprintf("bridge with the probe over without, %d pairs of runs in turns", pairs), "≥ 0.995", fmt.Sprintf("%.3f [%.3f, %.3f]", e.Median, e.Low, e.High), e.Median >= 0.995)
	return nil
}
