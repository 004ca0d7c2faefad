package vm

import (
	"fmt"

	"github.com/prometheus/procfs"

	"windtunnel/lab/units"
)

// reserve is the memory of QEMU itself and of the rest of the machine, bytes.
const reserve = 256 << 20

// roomFor returns an error for a VM that would push other programs out of
// memory.
func roomFor(memory int64) error {
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return fmt.Errorf("read how much memory a VM may have: %w", err)
	}
	info, err := proc.Meminfo()
	if err != nil {
		return fmt.Errorf("read how much memory a VM may have: %w", err)
	}
	if a := info.MemAvailableBytes; a != nil && *a < uint64(memory+reserve) {
		return fmt.Errorf("a VM of %s needs %s with what QEMU takes, and %s are available: make its memory smaller, or end other programs", units.FormatBytes(memory), units.FormatBytes(memory+reserve), units.FormatBytes(int64(*a)))
	}
	return nil
}
