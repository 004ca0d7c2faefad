package reconcile

import (
	"sync"
	"time"
)

// Comparison compares the maps with the tables that were written last, to find drift. It runs
// in the background, because reading many entries takes longer than a change.
type Comparison struct {
	Done    chan bool // receives true if the maps may differ, else false
	wait    sync.WaitGroup
	running bool
	took    time.Duration // duration of the last comparison
}

// compare starts a comparison, unless one is running.
func (r *Reconciler) compare() {
	c, plane, want := &r.Comparison, r.Programs.Plane(), r.written
	if c.running {
		return
	}
	c.running = true
	c.wait.Go(func() {
		began := time.Now()
		differs, err := plane.Differs(want.All())
		c.took = time.Since(began)
		c.Done <- differs || err != nil
	})
}

// Compared takes the result of a comparison. If the maps may differ, it makes a pass that reads
// and repairs them: a change during the comparison also looks like a difference.
func (r *Reconciler) Compared(differs bool) {
	r.Comparison.running = false
	if differs {
		r.written = nil
		r.Pass(Looking)
	}
}
