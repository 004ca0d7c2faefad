package reconcile

import (
	"maps"
	"sync"
	"time"

	"windtunnel/vrouter/datapath"
	"windtunnel/vrouter/fib"
)

// Comparison compares the maps with the tables that were written last, to find drift. It runs
// in the background, because reading many entries takes longer than a change.
type Comparison struct {
	Done    chan Difference
	wait    sync.WaitGroup
	running bool
	took    durations // of comparisons
	// doubtful has the differences that the last comparison found, if the agent wrote the maps at
	// the same time. nil: the agent did not write meanwhile, or nothing differed.
	doubtful map[datapath.Entry]bool
}

// Difference is the result of a comparison.
type Difference struct {
	tables  *fib.Compiled           // the comparison expected these in the maps
	entries map[datapath.Entry]bool // entries that differ
	err     error
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
		entries, err := plane.Differs(want.All())
		c.took.add(time.Since(began))
		c.Done <- Difference{want, entries, err}
	})
}

// Compared takes the result of a comparison. If the maps differ, it makes a pass that reads and
// repairs them. An entry that the agent wrote during the comparison also looks like a difference.
// So Compared then starts a second comparison, and ignores the entries that differ in only one.
func (r *Reconciler) Compared(found Difference) {
	c := &r.Comparison
	before := c.doubtful
	c.running, c.doubtful = false, nil
	if r.ended || r.written == nil {
		return // r.written: the next pass reads the maps
	}
	if found.tables != r.written && found.err == nil {
		if before == nil && len(found.entries) > 0 {
			c.doubtful = found.entries
			r.compare()
			return
		}
		maps.DeleteFunc(found.entries, func(e datapath.Entry, _ bool) bool { return !before[e] })
	}
	if len(found.entries) > 0 || found.err != nil {
		r.written = nil
		r.Pass(Looking)
	}
}
