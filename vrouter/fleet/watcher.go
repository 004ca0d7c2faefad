package fleet

import (
	"sync"

	"windtunnel/internal/pause"
)

// Watcher collects changes of the state until Take is called. Changes are
// coalesced.
type Watcher struct {
	C chan struct{} // receives after a change

	fleet   *Fleet
	mu      sync.Mutex
	touched Touched
}

// Watcher makes a watcher. If the store has been read, C receives at once.
func (f *Fleet) Watcher() *Watcher {
	w := &Watcher{C: make(chan struct{}, 1), fleet: f}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.watchers[w] = true
	if f.view != nil {
		w.add(Touched{All: true})
	}
	return w
}

func (w *Watcher) add(t Touched) {
	w.mu.Lock()
	w.touched.merge(t)
	w.mu.Unlock()
	pause.Wake(w.C)
}

// Take returns the changes since the last Take.
func (w *Watcher) Take() Touched {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.touched
	w.touched = Touched{}
	return t
}

// Close ends the watcher.
func (w *Watcher) Close() {
	w.fleet.mu.Lock()
	defer w.fleet.mu.Unlock()
	delete(w.fleet.watchers, w)
}
