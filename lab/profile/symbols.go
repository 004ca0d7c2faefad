package profile

import (
	"bytes"
	"cmp"
	"os"
	"slices"
	"sort"
	"strings"

	"github.com/prometheus/procfs"
)

// function has the name and the addresses of a function.
type function struct {
	start, end uint64 // end is 0 if it is not known; the function then extends to the next one
	name       string
}

// symbols has functions, sorted by address, at most one for each address.
type symbols []function

// newSymbols sorts functions. If several functions have one address, it keeps the
// first: the others are aliases. But it replaces padding and section names by a
// function; see replaces.
func newSymbols(list []function) symbols {
	slices.SortStableFunc(list, func(a, b function) int { return cmp.Compare(a.start, b.start) })
	kept := list[:0]
	for _, f := range list {
		switch n := len(kept); {
		case n == 0 || kept[n-1].start != f.start:
			kept = append(kept, f)
		case replaces(f.name, kept[n-1].name):
			kept[n-1] = f
		}
	}
	return kept
}

// replaces reports whether a is the name of a kernel function, and b is padding
// before a function or the name of a section.
func replaces(a, b string) bool {
	padding := func(s string) bool {
		return strings.HasPrefix(s, "__pfx_") || strings.HasPrefix(s, "_stext") || s == "_text"
	}
	return padding(b) && !padding(a)
}

// name returns the name of the function that contains an address.
func (s symbols) name(address uint64) (string, bool) {
	i := sort.Search(len(s), func(i int) bool { return s[i].start > address }) - 1
	if i < 0 || s[i].end != 0 && address >= s[i].end {
		return "", false
	}
	return s[i].name, true
}

// vdsoName is the kernel's name of the library that it maps into every process (vdso(7)).
const vdsoName = "[vdso]"

// openVDSO reads the library from this process's memory. It is not a file, and it is the
// same in all processes.
func openVDSO() *userSymbols {
	self, err := procfs.Self()
	if err != nil {
		return nil
	}
	memory, err := os.Open("/proc/self/mem")
	if err != nil {
		return nil
	}
	defer memory.Close()
	for _, m := range codeOf(self) {
		if m.file != vdsoName || m.end-m.start > 1<<20 {
			continue
		}
		image := make([]byte, m.end-m.start)
		if _, err := memory.ReadAt(image, int64(m.start)); err != nil {
			return nil
		}
		s, err := openUserSymbols(bytes.NewReader(image))
		if err != nil {
			return nil
		}
		return s
	}
	return nil
}
