package agent

import (
	"runtime"
	"runtime/debug"
)

// freeMemory returns memory to the system after a change of the desired state,
// which temporarily needs a second copy of the state. It runs between changes,
// since garbage collection takes time.
func (a *agent) freeMemory() {
	if a.freedAt == a.generation {
		return
	}
	a.freedAt = a.generation
	runtime.GC() // the store's page pool (sync.Pool) needs two collections
	debug.FreeOSMemory()
}
