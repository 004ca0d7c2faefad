package report

import (
	"fmt"

	"windtunnel/lab/sample"
	"windtunnel/lab/stats"
)

const (
	// alpha is the chance of a false difference that a report allows.
	alpha = 0.05
	// power is how often a difference of the detectable size would have shown.
	power = 0.8
)

// pairKey is one metric of two scenarios.
type pairKey struct {
	subject, baseline string
	metric            sample.Metric
}

// paired is what the blocks that two scenarios have in common say of one
// metric. Comparisons, ladders and hypotheses share it.
type paired struct {
	over, under []float64 // subject and baseline, by block
	ratio       *Interval // nil where there is none
	test        *stats.Test
	detectable  *float64
}

// n is the number of blocks that both sides have.
func (p *paired) n() int { return len(p.over) }

// few reports whether so few blocks can show nothing.
func (p *paired) few() bool { return p.n() < stats.MinimumTrials(stats.Level) }

// p is the test's p-value; nil where there is none or too few blocks for one.
func (p *paired) p() *float64 {
	if p.test == nil || p.few() {
		return nil
	}
	return &p.test.P
}

// paired returns what two scenarios of the plan have in common; why there is
// no ratio is noted once.
func (b *builder) paired(subject, baseline string, m sample.Metric) *paired {
	key := pairKey{subject, baseline, m}
	if known := b.pairs[key]; known != nil {
		return known
	}
	p := &paired{}
	b.pairs[key] = p
	p.over, p.under = pair(m, b.cells[subject], b.cells[baseline])
	iv, ok, err := stats.RatioOfMedians(p.over, p.under, stats.Level)
	if err != nil {
		b.doubt = append(b.doubt, fmt.Sprintf("%s of %s and %s has no ratio: %v.", label(m), subject, baseline, err))
	}
	if ok && err == nil && finiteInterval(Interval(iv)) {
		p.ratio = (*Interval)(&iv)
	}
	if test, ok, err := stats.WilcoxonSignedRank(p.over, p.under); ok && err == nil && finite(test.P) {
		p.test = &test
	}
	if d, ok, err := stats.DetectableRatio(p.over, p.under, alpha, power); ok && err == nil && finite(d) {
		p.detectable = &d
	}
	return p
}

// pair returns the values of both sides from the blocks that have both. Both
// columns are in order of block.
func pair(m sample.Metric, subject, baseline *cell) (over, under []float64) {
	if subject == nil || baseline == nil {
		return nil, nil
	}
	i, j := 0, 0
	sb, bb := subject.blocks[m], baseline.blocks[m]
	for i < len(sb) && j < len(bb) {
		switch {
		case sb[i] < bb[j]:
			i++
		case sb[i] > bb[j]:
			j++
		default:
			over = append(over, subject.values[m][i])
			under = append(under, baseline.values[m][j])
			i++
			j++
		}
	}
	return over, under
}

func finiteInterval(iv Interval) bool {
	return finite(iv.Median) && finite(iv.Low) && finite(iv.High) && finite(iv.Level)
}
