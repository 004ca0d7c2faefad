package distance

import (
	"sync/atomic"
	"time"
)

// line is a cache line that two threads pass to and fro. The value counts the
// passes; the padding keeps other data out of the line and of its neighbour,
// which CPUs fetch together.
type line struct {
	_       [128]byte
	passes  atomic.Uint32
	_       [124]byte
	present atomic.Uint32 // threads that have come
	_       [124]byte
}

func (l *line) reset() {
	l.passes.Store(0)
	l.present.Store(0)
}

// meet waits for the other thread. Both see the same answer: the second thread
// to come, or the first one's end of patience, decides.
func (l *line) meet() bool {
	const gaveUp = 1 << 31
	if n := l.present.Add(1); n != 1 {
		return n == 2
	}
	for end := time.Now().Add(patience); ; {
		for range 50 {
			if l.present.Load() == 2 {
				return true
			}
		}
		if time.Now().After(end) && l.present.CompareAndSwap(1, gaveUp) {
			return false
		}
	}
}

// lead times round trips, in nanoseconds.
func (l *line) lead(trips []int64) bool {
	if !l.meet() {
		return false
	}
	for i := range trips {
		begin := time.Now()
		l.passes.Store(uint32(2*i + 1))
		for l.passes.Load() != uint32(2*i+2) {
		}
		trips[i] = int64(time.Since(begin))
	}
	return true
}

// follow answers as many round trips.
func (l *line) follow(trips int) bool {
	if !l.meet() {
		return false
	}
	for i := range trips {
		for l.passes.Load() != uint32(2*i+1) {
		}
		l.passes.Store(uint32(2*i + 2))
	}
	return true
}

// clockOverhead is what lead's two readings of the clock add to a round trip.
func clockOverhead() int64 {
	least := int64(1 << 62)
	for range 1000 {
		begin := time.Now()
		least = min(least, int64(time.Since(begin)))
	}
	return least
}
