package agent

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// memoryShare: freeMemory runs when the heap has grown by 1/8.
const memoryShare = 8

// freeMemory returns memory to the system after a change of the desired state, or if the heap
// has grown by 1/memoryShare: a check for drift temporarily needs a copy of the tables.
// freeMemory runs between changes, because a garbage collection takes time. After a change
// it also unmaps the program's file.
func (a *agent) freeMemory() {
	var m runtime.MemStats
	changed := a.freedAt != a.reconciler.Generation
	if runtime.ReadMemStats(&m); !changed && m.HeapAlloc <= a.heap+a.heap/memoryShare {
		return
	}
	a.freedAt = a.reconciler.Generation
	runtime.GC() // the store's page pool (sync.Pool) needs two collections
	debug.FreeOSMemory()
	runtime.ReadMemStats(&m)
	a.heap = m.HeapAlloc
	if changed {
		if err := unmapProgram(); err != nil {
			a.log.Debug("cannot unmap the program's file", "error", err)
		}
	}
}

// unmapProgram unmaps the pages of the program's file: its code and constants. Most of them are only used by the start
// and by large changes. The system maps a page again when the program uses it, and reads it only if it needed the memory for
// something else meanwhile.
func unmapProgram() error {
	self, err := procfs.Self()
	if err != nil {
		return fmt.Errorf("open /proc/self: %w", err)
	}
	maps, err := self.ProcMaps()
	if err != nil {
		return fmt.Errorf("read /proc/self/maps: %w", err)
	}
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the program's file: %w", err)
	}
	for _, m := range maps {
		if m.Pathname != program || m.Perms.Write {
			continue
		}
		for _, advice := range []uintptr{unix.MADV_COLD, unix.MADV_DONTNEED} {
			if _, _, errno := unix.Syscall(unix.SYS_MADVISE, m.StartAddr, m.EndAddr-m.StartAddr, advice); errno != 0 {
				return fmt.Errorf("madvise %x-%x of %s: %w", m.StartAddr, m.EndAddr, program, errno)
			}
		}
	}
	return nil
}
