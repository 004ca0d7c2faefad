package fleet

import "sync"

// Watcher is told that the state changed, and remembers what it was told until
// it is asked: many changes may be one to who looks late.
type Watcher struct {
	C chan struct{} // something changed since the last Take

	fleet   *Fleet
	mu      sync.Mutex
	touched Touched
}

// Watcher makes one. It is woken at once when there is something to look at.
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
	select {
	case w.C <- struct{}{}:
	default:
	}
}

// Take returns what was touched since it was last asked.
func (w *Watcher) Take() Touched {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.touched
	w.touched = Touched{}
	return t
}

// Close ends it.
func (w *Watcher) Close() {
	w.fleet.mu.Lock()
	defer w.fleet.mu.Unlock()
	delete(w.fleet.watchers, w)
}
