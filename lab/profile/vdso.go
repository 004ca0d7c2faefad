package profile

import (
	"bytes"
	"os"

	"github.com/prometheus/procfs"
)

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
