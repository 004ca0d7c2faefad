package agent

import (
	"runtime"
	"runtime/debug"
)

// freeMemory returns memory to the system after a change of the desired state. Such a
// change temporarily needs a second copy of the state. freeMemory runs between
// changes, because garbage collection takes time.
func (a *agent) freeMemory() {
	if a.freedAt == a.generation {
		return
	}
	a.freedAt = a.generation
	runtime.GC() // the store's page pool (sync.Pool) needs two collections
	debug.FreeOSMemory()
}
