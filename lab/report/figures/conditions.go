package figures

import (
	"slices"

	"windtunnel/lab/condition"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/sample"
)

// Split divides a run's samples by CPU distance. parts[shown] is the part that the
// report shows.
func Split(samples []sample.Sample, choice condition.Choice) (c model.Conditions, parts [][]sample.Sample, shown int) {
	levels, parts, shown := condition.Split(samples, choice)
	for i, l := range levels {
		at := ValuesOf(counting(parts[i]), sample.CPUDistance)
		c.Distances = append(c.Distances, model.Distance{Low: l.Low, Median: l.Median, High: l.High, Share: l.Share, Shown: i == shown, Trials: len(at)})
	}
	return c, parts, shown
}

// counting returns the samples that count.
func counting(samples []sample.Sample) []sample.Sample {
	return slices.DeleteFunc(slices.Clone(samples), func(s sample.Sample) bool { return !s.Counts() })
}

// Observe sets MemoryCopy and LeftOut from the samples that count.
func Observe(c *model.Conditions, samples []sample.Sample) {
	samples = counting(samples)
	c.MemoryCopy = quantity.MedianInterval(ValuesOf(samples, sample.MemoryCopy))
	for _, why := range []sample.LeftOut{sample.StolenSlice, sample.DistantSlice} {
		share := ShareOf(samples, func(p sample.Point) bool { return p.LeftOut == why })
		if share > 0 && !c.Adjusted {
			if c.LeftOut == nil {
				c.LeftOut = make(map[sample.LeftOut]float64)
			}
			c.LeftOut[why] = share
		}
	}
}

// ShareOf returns the share of slices for which has is true, 0..1. It counts the slices
// within the samples' windows.
func ShareOf(samples []sample.Sample, has func(sample.Point) bool) float64 {
	all, n := 0, 0
	for i := range samples {
		for _, p := range condition.Inside(samples[i].Series, samples[i].Metrics[sample.WindowSeconds]) {
			if all++; has(p) {
				n++
			}
		}
	}
	return float64(n) / float64(max(all, 1))
}
