package report

import (
	"fmt"
	"strings"

	"windtunnel/lab/phrase"
	"windtunnel/lab/sample"
	"windtunnel/lab/stats"
	"windtunnel/lab/units"
)

// latency merges the distributions of the trials that count. A percentile of
// the merged distribution is one of all transactions. Only where no trial kept
// its distribution it falls back to medians of each trial's own percentiles,
// and notes that.
func (b *builder) latency(id string, c *cell) *Latency {
	merged, used, top := b.merge(id, c)
	if used == 0 {
		return b.latencyOfPercentiles(id, c)
	}
	if missing := len(c.values[sample.LatencyP50]) - used; missing > 0 {
		b.doubt = append(b.doubt, fmt.Sprintf("%s: the latency percentiles are those of the %d trials that kept their distribution; %s did not.", id, used, phrase.Count(missing, "trial")))
	}
	l := &Latency{
		P50: percentile(merged, 50), P90: percentile(merged, 90),
		P99: percentile(merged, 99), P999: percentile(merged, 99.9),
	}
	// The tools' own maximum is exact; the histogram's is rounded up to its
	// bucket.
	if l.Max = largest(top); len(top) < used {
		if rounded, ok := merged.Max(); ok {
			l.Max = &rounded
		}
	}
	return l
}

// merge adds up the distributions of the trials that kept one. top holds the
// exact maxima of those whose tool gave it.
func (b *builder) merge(id string, c *cell) (merged *stats.Histogram, used int, top []float64) {
	merged = &stats.Histogram{}
	for _, s := range c.ok {
		if s.Latency == "" {
			continue
		}
		if err := merged.Add(s.Latency); err != nil {
			b.doubt = append(b.doubt, fmt.Sprintf("%s block %d: the latency distribution cannot be read and is left out: %v.", id, s.Block, err))
			continue
		}
		used++
		if v, ok := s.Metrics[sample.LatencyMax]; ok && units.Finite(v) {
			top = append(top, v)
		}
	}
	if merged.Count() == 0 {
		return merged, 0, nil
	}
	return merged, used, top
}

func (b *builder) latencyOfPercentiles(id string, c *cell) *Latency {
	l := &Latency{
		P50: median(c, sample.LatencyP50), P90: median(c, sample.LatencyP90),
		P99: median(c, sample.LatencyP99), P999: median(c, sample.LatencyP999),
		Max: largest(c.values[sample.LatencyMax]),
	}
	if *l == (Latency{}) {
		return nil
	}
	var which []string
	for _, p := range l.Percentiles() {
		if p.Value != nil && p.Key != string(sample.LatencyMax) {
			which = append(which, p.Name)
		}
	}
	if len(which) > 0 {
		b.doubt = append(b.doubt, fmt.Sprintf("%s: the tool gave no latency distribution, so %s are medians of each trial's own percentile, not percentiles of all transactions.", id, strings.Join(which, ", ")))
	}
	return l
}

func median(c *cell, m sample.Metric) *float64 {
	if iv, ok := c.summary[m]; ok {
		return &iv.Median
	}
	return nil
}

func percentile(h *stats.Histogram, p float64) *float64 {
	if v, ok := h.Percentile(p); ok {
		return &v
	}
	return nil
}

func largest(xs []float64) *float64 {
	if len(xs) == 0 {
		return nil
	}
	top := xs[0]
	for _, x := range xs {
		top = max(top, x)
	}
	return &top
}
