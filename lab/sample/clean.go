package sample

import (
	"fmt"
	"maps"
	"slices"

	"windtunnel/lab/units"
)

// Clean returns the sample without values that are not finite, because neither
// SQL nor JSON can store them. left has one line for each value left out. The
// argument is not changed.
func (s Sample) Clean() (clean Sample, left []string) {
	for m, v := range s.Metrics {
		if !units.Finite(v) {
			left = append(left, fmt.Sprintf("%s was %v and is left out", m, v))
		}
	}
	if len(left) > 0 {
		slices.Sort(left)
		s.Metrics = maps.Clone(s.Metrics)
		maps.DeleteFunc(s.Metrics, func(_ Metric, v float64) bool { return !units.Finite(v) })
	}
	dirty := func(p Point) bool {
		return !units.Finite(p.At) || !units.Finite(p.Bits) || !units.Finite(p.SenderCPU) || !units.Finite(p.ReceiverCPU)
	}
	if all := len(s.Series); slices.ContainsFunc(s.Series, dirty) {
		s.Series = slices.DeleteFunc(slices.Clone(s.Series), dirty)
		left = append(left, fmt.Sprintf("%d of %d points of the series were not finite numbers and are left out", all-len(s.Series), all))
	}
	s.Gates, s.Flags = CleanGates(s.Gates), CleanGates(s.Flags)
	return s, left
}

// CleanGates sets figures that are not finite to 0. The gate's message still
// has them.
func CleanGates(gates []Gate) []Gate {
	dirty := func(g Gate) bool { return !units.Finite(g.Value) || !units.Finite(g.Limit) }
	if !slices.ContainsFunc(gates, dirty) {
		return gates
	}
	gates = slices.Clone(gates)
	for i := range gates {
		if dirty(gates[i]) {
			gates[i].Value, gates[i].Limit, gates[i].Unit = 0, 0, ""
		}
	}
	return gates
}
