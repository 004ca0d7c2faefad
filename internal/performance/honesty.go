package main

import (
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"windtunnel/lab/report/model"
	"windtunnel/lab/report/verdicts"
	"windtunnel/lab/sample"
)

// slowdown is the difference that power adds. The comparison must find it.
const slowdown = 0.03

// tally counts the verdicts of one kind of comparison.
type tally struct{ tests, alone, corrected int }

func (v *tally) add(c model.Comparison) {
	v.tests++
	if c.P != nil && *c.P <= 0.05 {
		v.alone++
	}
	if c.Verdict == model.Differs {
		v.corrected++
	}
}

func (v tally) share(n int) float64 { return float64(n) / float64(v.tests) }

// honesty measures how often the lab claims a difference that does not exist. One
// system runs against itself.
func (b *session) honesty() error {
	var all tally
	alarmed, runs := 0, b.rounds(b.runs)
	var noise []*model.Report
	for i := range runs {
		r, err := b.suite(fmt.Sprintf("aa-%d", i), "aa")
		if err != nil {
			return err
		}
		noise = append(noise, r)
		any := false
		for _, c := range r.Comparisons {
			if c.Adjusted == nil || !verdicts.Headline(c.Metric, false) && !verdicts.Headline(c.Metric, true) {
				continue
			}
			all.add(c)
			any = any || c.Verdict == model.Differs
		}
		if any {
			alarmed++
		}
	}
	if all.tests == 0 && b.short {
		b.note("`aa`", "too few trials for a test")
		return nil
	}
	if all.tests == 0 {
		return fmt.Errorf("the run of suite aa has no comparison")
	}
	within := func(share float64) bool { return share >= 0.01 && share <= 0.09 }
	b.row(fmt.Sprintf("`aa` %d times: %d tests, p ≤ 0.05 before the correction (the interval excludes 1)", runs, all.tests), "1–9 %", fmt.Sprintf("%d (%.1f %%)", all.alone, 100*all.share(all.alone)), within(all.share(all.alone)))
	b.row("the same runs: a difference of throughput, transactions or CPU per byte is claimed after the correction", "≤ 9 %", fmt.Sprintf("%d of %d", alarmed, runs), float64(alarmed) <= 0.09*float64(runs))
	return b.keepNoise(noise)
}

// keepNoise writes the samples of the runs to a file, for the simulation in
// lab/report/model.
func (b *session) keepNoise(runs []*model.Report) error {
	if b.noise == "" {
		return nil
	}
	f, err := os.Create(b.noise)
	if err != nil {
		return err
	}
	defer f.Close()
	w := csv.NewWriter(f)
	metrics := []sample.Metric{sample.Throughput, sample.Transactions, sample.SenderCPUPerByte, sample.ReceiverCPUPerByte}
	head := []string{"run", "block", "scenario"}
	for _, m := range metrics {
		head = append(head, string(m))
	}
	w.Write(head)
	for i, r := range runs {
		for _, s := range r.Scenarios {
			for _, smp := range s.Counting() {
				row := []string{strconv.Itoa(i), strconv.Itoa(smp.Block), s.ID}
				for _, m := range metrics {
					text := ""
					if v, ok := smp.Metrics[m]; ok {
						text = strconv.FormatFloat(v, 'g', 7, 64)
					}
					row = append(row, text)
				}
				w.Write(row)
			}
		}
	}
	w.Flush()
	return w.Error()
}

// slowSuite uses the default timing. The streams have a fixed rate, because the CPU time
// per byte of an unlimited stream depends more on the machine's memory speed.
const slowSuite = `suite: slowdown
title: A known difference of 3 %%, to be found
trials: 18
fabrics:
  wire: {kind: wire, offload: tcp}
  full: {kind: wire, offload: tcp, rate: 1Gbit}
  less: {kind: wire, offload: tcp, rate: %dMbit}
workloads:
  plain: {kind: tcp_stream, buffer: 128k}
  paced: {kind: tcp_stream, buffer: 128k, rate: 4Gbit}
  worked: {kind: tcp_stream, buffer: 128k, rate: 4Gbit, receiver_work: %.5f}
scenarios:
  - {id: as-is/loop, system: bridge, fabric: wire, workload: paced}
  - {id: slower/loop, system: bridge, fabric: wire, workload: worked}
  - {id: as-is/link, system: bridge, fabric: full, workload: plain}
  - {id: slower/link, system: bridge, fabric: less, workload: plain}
comparisons:
  - {baseline: as-is, subjects: slower}
`

// slowdowns writes slowSuite to a file, with a busy loop of work ns per byte.
func (b *session) slowdowns(work float64) (file string, err error) {
	file = filepath.Join(b.scratch, "slowdown.yaml")
	return file, os.WriteFile(file, fmt.Appendf(nil, slowSuite, int(1000*(1-slowdown)), work), 0o644)
}

// power measures how often the lab finds a difference of 3 %. It adds two differences: a
// busy loop that uses 3 % of the receiver's CPU time per byte, and a link with 97 % of
// the rate.
func (b *session) power() error {
	file, err := b.slowdowns(0)
	if err != nil {
		return err
	}
	first, err := b.suite("cost", file, "--scenario", "as-is/loop")
	if err != nil {
		return err
	}
	s, ok := find(first, "as-is/loop")
	if !ok || s.ReceiverCPUPerByte == nil {
		return fmt.Errorf("the receiver's CPU per byte was not measured")
	}
	perByte := s.ReceiverCPUPerByte.Median
	if file, err = b.slowdowns(slowdown * perByte); err != nil {
		return err
	}
	runs := b.rounds(b.runs)
	var loop, link tally
	var ratios []float64
	for i := range runs {
		r, err := b.suite(fmt.Sprintf("slowdown-%d", i), file)
		if err != nil {
			return err
		}
		for _, c := range r.Comparisons {
			switch {
			case c.Subject == "slower/loop" && c.Metric == sample.ReceiverCPUPerByte:
				loop.add(c)
				ratios = append(ratios, c.Ratio.Median)
				fmt.Fprintf(os.Stderr, "run %d of %d: the receiver's CPU per byte is %.3f× [%.3f, %.3f], %s\n", i+1, runs, c.Ratio.Median, c.Ratio.Low, c.Ratio.High, c.Verdict)
			case c.Subject == "slower/link" && c.Metric == sample.Throughput:
				link.add(c)
			}
		}
	}
	if loop.tests == 0 || link.tests == 0 {
		return fmt.Errorf("the run of suite slowdown has no comparison")
	}
	slices.Sort(ratios)
	b.row(fmt.Sprintf("a busy loop of %.5f ns/byte in the receiver of 4 Gbit/s (3 %% of %.3f; median ratio seen %.3f), found after the correction", slowdown*perByte, perByte, ratios[len(ratios)/2]), "≥ 90 %", fmt.Sprintf("%d of %d", loop.corrected, loop.tests), loop.share(loop.corrected) >= 0.9)
	b.row("the same, found by its own p ≤ 0.05", "≥ 90 %", fmt.Sprintf("%d of %d", loop.alone, loop.tests), loop.share(loop.alone) >= 0.9)
	b.row("a link of 970 instead of 1,000 Mbit/s, found after the correction", "≥ 90 %", fmt.Sprintf("%d of %d", link.corrected, link.tests), link.share(link.corrected) >= 0.9)
	return nil
}
