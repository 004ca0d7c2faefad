package vm

import (
	"fmt"

	"github.com/prometheus/procfs"

	"windtunnel/lab/units"
)

// reserve is the memory that QEMU and other programs need beside the VM, in bytes.
const reserve = 256 << 20

// roomFor returns an error if the machine has too little free memory for a VM.
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
		return fmt.Errorf("a VM with %s of memory needs %s including QEMU, but %s are available: give the VM less memory, or end other programs", units.FormatBytes(memory), units.FormatBytes(memory+reserve), units.FormatBytes(int64(*a)))
	}
	return nil
}
