package profile

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// kernelSymbols name kernel addresses, BPF programs' among them.
type kernelSymbols struct {
	starts []uint64 // in order
	names  []string
}

const kallsymsFile = "/proc/kallsyms"

func readKernelSymbols() (*kernelSymbols, error) {
	text, err := os.ReadFile(kallsymsFile)
	if err != nil {
		return nil, fmt.Errorf("read the kernel's symbols (CONFIG_KALLSYMS): %w", err)
	}
	return parseKallsyms(text)
}

// errHidden says that the kernel shows zeros in place of addresses.
var errHidden = errors.New("the kernel hides its addresses; run as root, with sysctl kernel.kptr_restrict at 0 or 1")

// parseKallsyms reads address, type, name and module, one symbol a line. Only
// symbols of code count.
func parseKallsyms(text []byte) (*kernelSymbols, error) {
	type symbol struct {
		start uint64
		name  string
	}
	var list []symbol
	hidden := false
	for n := 1; len(text) > 0; n++ {
		var line []byte
		line, text, _ = bytes.Cut(text, []byte{'\n'})
		fields := strings.Fields(string(line))
		if len(fields) == 0 {
			continue
		}
		if len(fields) < 3 || len(fields[1]) != 1 {
			return nil, fmt.Errorf("%s, line %d: %.60q is no address, type and name", kallsymsFile, n, line)
		}
		if !strings.Contains("tTwW", fields[1]) {
			continue
		}
		start, err := strconv.ParseUint(fields[0], 16, 64)
		if err != nil {
			return nil, fmt.Errorf("%s, line %d: address: %w", kallsymsFile, n, err)
		}
		if start == 0 {
			hidden = true
			continue
		}
		list = append(list, symbol{start, kernelName(fields[2])})
	}
	if len(list) == 0 {
		if hidden {
			return nil, errHidden
		}
		return nil, fmt.Errorf("%s: it names no code", kallsymsFile)
	}
	// Of several names of one address the first stays: it is the function's
	// own, and aliases follow.
	slices.SortStableFunc(list, func(a, b symbol) int { return cmp.Compare(a.start, b.start) })
	k := &kernelSymbols{}
	for _, s := range list {
		if n := len(k.starts); n > 0 && k.starts[n-1] == s.start {
			if plainer(s.name, k.names[n-1]) {
				k.names[n-1] = s.name
			}
			continue
		}
		k.starts, k.names = append(k.starts, s.start), append(k.names, s.name)
	}
	return k, nil
}

// plainer prefers a function's name to the padding before it and to the names
// of sections.
func plainer(a, b string) bool {
	padding := func(s string) bool {
		return strings.HasPrefix(s, "__pfx_") || strings.HasPrefix(s, "_stext") || s == "_text"
	}
	return padding(b) && !padding(a)
}

// kernelName makes bpf:NAME of bpf_prog_TAG_NAME, the name of a BPF program
// (bpf_get_prog_name, kernel/bpf/core.c).
func kernelName(name string) string {
	rest, ok := strings.CutPrefix(name, "bpf_prog_")
	if !ok {
		return name
	}
	tag, program, named := strings.Cut(rest, "_")
	if len(tag) != 16 || strings.Trim(tag, "0123456789abcdef") != "" {
		return name
	}
	if !named || program == "" {
		program = tag
	}
	return "bpf:" + program
}

// name returns the function that holds an address, or its address where none
// does.
func (k *kernelSymbols) name(address uint64) string {
	if k == nil {
		return "[unknown]"
	}
	i := sort.Search(len(k.starts), func(i int) bool { return k.starts[i] > address })
	if i == 0 {
		return fmt.Sprintf("0x%x", address)
	}
	return k.names[i-1]
}
