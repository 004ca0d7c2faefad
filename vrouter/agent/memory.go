package agent

import (
	"runtime"
	"runtime/debug"
)

// tidy gives back to the system what a change of the desired state needed for a
// moment: a fleet's state is decoded, checked and compiled beside the one that
// is at work. It waits for a quiet moment, since it stops to collect.
func (a *agent) tidy() {
	if a.tidied == a.generation {
		return
	}
	a.tidied = a.generation
	runtime.GC() // the store's pool of pages lets go of them in two steps
	debug.FreeOSMemory()
}
