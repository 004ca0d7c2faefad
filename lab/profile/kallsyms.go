package profile

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

const kallsymsFile = "/proc/kallsyms"

func readKernelSymbols() (symbols, error) {
	text, err := os.ReadFile(kallsymsFile)
	if err != nil {
		return nil, fmt.Errorf("read the kernel's symbols (CONFIG_KALLSYMS): %w", err)
	}
	return parseKallsyms(text)
}

// errHidden reports that the kernel shows zeros instead of addresses.
var errHidden = errors.New("the kernel hides its addresses; run as root, with sysctl kernel.kptr_restrict at 0 or 1")

// parseKallsyms parses the kernel's symbols, including BPF programs. Each line has
// address, type, name and module. It keeps only symbols of code.
func parseKallsyms(text []byte) (symbols, error) {
	var list []function
	hidden := false
	for n := 1; len(text) > 0; n++ {
		var line []byte
		line, text, _ = bytes.Cut(text, []byte{'\n'})
		fields := strings.Fields(string(line))
		if len(fields) == 0 {
			continue
		}
		if len(fields) < 3 || len(fields[1]) != 1 {
			return nil, fmt.Errorf("%s, line %d: %.60q does not have address, type and name", kallsymsFile, n, line)
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
		list = append(list, function{start: start, name: kernelName(fields[2])})
	}
	if len(list) == 0 {
		if hidden {
			return nil, errHidden
		}
		return nil, fmt.Errorf("%s: it names no code", kallsymsFile)
	}
	return newSymbols(list), nil
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

// kernelFunction returns the name of the kernel function that contains an address,
// or the address if there is no such function. Without symbols it returns [unknown].
func kernelFunction(s symbols, address uint64) string {
	if s == nil {
		return "[unknown]"
	}
	if name, ok := s.name(address); ok {
		return name
	}
	return fmt.Sprintf("0x%x", address)
}
