package profile

import (
	"cmp"
	"slices"
	"sort"
	"strings"
)

// function is a function's name and where it lies in memory.
type function struct {
	start, end uint64 // end is 0 where it is not known: up to the next function
	name       string
}

// symbols are functions in the order of their addresses, one at each address.
type symbols []function

// newSymbols sorts functions. Of several names of one address the first stays: it
// is the function's own, and aliases follow.
func newSymbols(list []function) symbols {
	slices.SortStableFunc(list, func(a, b function) int { return cmp.Compare(a.start, b.start) })
	kept := list[:0]
	for _, f := range list {
		switch n := len(kept); {
		case n == 0 || kept[n-1].start != f.start:
			kept = append(kept, f)
		case plainer(f.name, kept[n-1].name):
			kept[n-1] = f
		}
	}
	return kept
}

// plainer prefers a kernel function's name to the padding before it and to the
// names of sections.
func plainer(a, b string) bool {
	padding := func(s string) bool {
		return strings.HasPrefix(s, "__pfx_") || strings.HasPrefix(s, "_stext") || s == "_text"
	}
	return padding(b) && !padding(a)
}

// name returns the function that holds an address.
func (s symbols) name(address uint64) (string, bool) {
	i := sort.Search(len(s), func(i int) bool { return s[i].start > address }) - 1
	if i < 0 || s[i].end != 0 && address >= s[i].end {
		return "", false
	}
	return s[i].name, true
}
