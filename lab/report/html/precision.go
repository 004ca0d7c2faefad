package html

import (
	"fmt"
	"math"
)

// precision is how well the run knows its figures.
type precision struct {
	Reached bool
	Line    string
	Widest  []string
}

// precision is nil where the plan asks for none.
func (b *builder) precision() *precision {
	p := b.r.Precision
	if p == nil {
		return nil
	}
	out := &precision{Reached: p.Reached, Line: p.Why}
	if out.Line == "" {
		verb := "not reached"
		if p.Reached {
			verb = "reached"
		}
		out.Line = fmt.Sprintf("A precision of ± %s was asked for and %s.", share(p.Wanted), verb)
	}
	for _, w := range p.Widest {
		of := w.Subject
		if w.Baseline != "" {
			of += " / " + w.Baseline
		}
		width := "too few trials for an interval"
		if w.HalfWidth > 0 && !math.IsInf(w.HalfWidth, 0) {
			width = "± " + share(w.HalfWidth)
		}
		out.Widest = append(out.Widest, fmt.Sprintf("%s of %s: %s", w.Metric.Label(), of, width))
	}
	return out
}
