package vm

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"windtunnel/lab/units"
)

// reserve is what QEMU itself takes and what the machine shall keep.
const reserve = 256 << 20

// roomFor refuses a machine that would push others out of memory.
func roomFor(memory int64) error {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return fmt.Errorf("see whether there is memory for a VM: %w", err)
	}
	available, ok := availableMemory(string(text))
	if ok && available < memory+reserve {
		return fmt.Errorf("a VM of %s needs %s with what QEMU takes, and %s are available: make its memory smaller, or end other programs", units.FormatBytes(memory), units.FormatBytes(memory+reserve), units.FormatBytes(available))
	}
	return nil
}

// availableMemory reads MemAvailable of /proc/meminfo, in bytes.
func availableMemory(meminfo string) (int64, bool) {
	for line := range strings.Lines(meminfo) {
		f := strings.Fields(line)
		if len(f) == 3 && f[0] == "MemAvailable:" && f[2] == "kB" {
			n, err := strconv.ParseInt(f[1], 10, 53)
			return n << 10, err == nil
		}
	}
	return 0, false
}
