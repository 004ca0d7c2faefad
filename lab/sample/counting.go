package sample

import (
	"cmp"
	"slices"
	"strings"
)

// Counting returns the samples that the figures of a scenario are computed
// from: the last attempt that counts of each block, in order of blocks. The
// given samples are of one scenario, in any order.
func Counting(samples []*Sample) []*Sample {
	list := slices.DeleteFunc(slices.Clone(samples), func(s *Sample) bool { return !s.Counts() })
	slices.SortStableFunc(list, func(a, b *Sample) int {
		return cmp.Or(cmp.Compare(a.Block, b.Block), cmp.Compare(a.Attempt, b.Attempt))
	})
	var last []*Sample
	for i, s := range list {
		if i+1 == len(list) || list[i+1].Block != s.Block {
			last = append(last, s)
		}
	}
	return last
}

// Cause returns why a sample does not count: the kind of its failure, or its
// first gate. It is empty if the sample has neither.
func (s *Sample) Cause() string {
	switch {
	case !s.OK():
		return string(s.Failure.Kind)
	case len(s.Gates) > 0:
		return string(s.Gates[0].Name)
	}
	return ""
}

// GateText joins the checks of a list: "name: message; …".
func GateText(gates []Gate) string {
	var parts []string
	for _, g := range gates {
		text := string(g.Name)
		if g.Message != "" {
			text += ": " + g.Message
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}
