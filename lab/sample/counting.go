package sample

import (
	"cmp"
	"slices"
	"strings"
)

// Counting returns, in order of block, the samples whose figures stand for
// their scenario: of each block the last attempt that counts. The samples are of
// one scenario, in any order.
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

// Cause is why a sample does not count, in a word: its failure's kind, or the
// first gate. Empty where neither is the reason.
func (s *Sample) Cause() string {
	switch {
	case !s.OK():
		return string(s.Failure.Kind)
	case len(s.Gates) > 0:
		return string(s.Gates[0].Name)
	}
	return ""
}

// GateText is every check of a list with its message: "name: message; …".
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
