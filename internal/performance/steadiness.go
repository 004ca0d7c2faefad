package main

import (
	"fmt"
	"math"
	"time"

	"windtunnel/lab/sample"
	"windtunnel/lab/stats"
)

// steadiness measures how much the trials of one stream differ, and whether the wire
// drops frames.
func (b *session) steadiness() error {
	b.control()
	r, err := b.suite("steadiness")
	if err != nil {
		return err
	}
	for _, profile := range []string{"none", "tcp", "tunnel"} {
		s, ok := find(r, profile+"/unlimited")
		if !ok {
			return fmt.Errorf("%s/unlimited has no figures: %s", profile, s.Skipped)
		}
		v := values(s, sample.Throughput)
		cv, _, err := stats.CoefficientOfVariation(v)
		if err != nil {
			return err
		}
		median, _, err := stats.Median(v)
		if err != nil {
			return err
		}
		b.row(fmt.Sprintf("`%s` unlimited: coefficient of variation of %d trials at %.2f Gbit/s", profile, len(v), median/1e9), "≤ 3 %", fmt.Sprintf("%.2f %%", 100*cv), cv <= 0.03)
		again, segments := total(values(s, sample.Retransmits)), total(values(s, sample.Segments))
		b.row(fmt.Sprintf("`%s` unlimited: segments sent again", profile), "< 1 in 10,000", fmt.Sprintf("%.0f of %.0f (%.2f in 10,000)", again, segments, 1e4*again/segments), again < segments/1e4)
		if s, ok = find(r, profile+"/paced"); !ok {
			return fmt.Errorf("%s/paced has no figures: %s", profile, s.Skipped)
		}
		worst := 0.0
		for _, x := range values(s, sample.Throughput) {
			worst = max(worst, math.Abs(x/4e9-1))
		}
		b.row(fmt.Sprintf("`%s` paced to 4 Gbit/s: farthest trial from it", profile), "≤ 1 %", fmt.Sprintf("%.2f %%", 100*worst), worst <= 0.01)
		again = total(values(s, sample.Retransmits))
		b.row(fmt.Sprintf("`%s` paced: segments sent again", profile), "0", fmt.Sprintf("%.0f", again), again == 0)
	}
	return nil
}

// control measures how much the machine itself varies: the speed of plain memory copies,
// without a network, in windows as long as the trials.
func (b *session) control() {
	from, to := make([]byte, 64<<20), make([]byte, 64<<20)
	var rates []float64
	for range 6 {
		start, copied := time.Now(), 0
		for time.Since(start) < 3*time.Second {
			copied += copy(to, from)
		}
		rates = append(rates, float64(copied)/time.Since(start).Seconds())
		time.Sleep(time.Second)
	}
	if cv, ok, err := stats.CoefficientOfVariation(rates); ok && err == nil {
		b.note("control, no network: coefficient of variation of 6 × 3 s of copying memory", fmt.Sprintf("%.2f %%", 100*cv))
	}
}
