package cpudistance

import (
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// line is a cache line that two threads pass to each other. The value counts
// the passes. The padding keeps other data out of this line and of the next
// one, which CPUs fetch together with it.
type line struct {
	_       [128]byte
	passes  atomic.Uint32
	_       [124]byte
	present atomic.Uint32 // threads that have arrived
	_       [124]byte
}

func (l *line) reset() {
	l.passes.Store(0)
	l.present.Store(0)
}

// meet waits for the other thread, for at most patience. Both threads get the
// same answer: the second thread's arrival or the first thread's timeout
// decides.
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

// lead starts each round trip and stores its time in nanoseconds.
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

// follow answers the given number of round trips.
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

// clockOverhead is the time that lead's two clock readings add to a round trip.
func clockOverhead() int64 {
	least := int64(1 << 62)
	for range 1000 {
		begin := time.Now()
		least = min(least, int64(time.Since(begin)))
	}
	return least
}

// copyBytes, read and written, do not fit into the private caches of today's
// CPUs. One copy takes some 50 µs.
const copyBytes = 512 << 10

// buffers are memory that a thread copies.
type buffers struct{ from, to []byte }

func newBuffers() *buffers {
	b := &buffers{make([]byte, copyBytes), make([]byte, copyBytes)}
	for i := range b.from {
		b.from[i] = byte(i) // real pages, not the kernel's shared page of zeroes
	}
	copy(b.to, b.from)
	return b
}

func (b *buffers) copy() time.Duration {
	begin := time.Now()
	copy(b.to, b.from)
	return max(time.Since(begin), 1)
}

// bell wakes a waiting thread by a futex. A channel would involve the runtime's
// scheduler, and wake the thread tens of microseconds later.
type bell struct{ rung atomic.Uint32 }

func (b *bell) ring() {
	b.rung.Store(1)
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&b.rung)), futexWakePrivate, 1, 0, 0, 0)
}

func (b *bell) wait() {
	for !b.rung.CompareAndSwap(1, 0) {
		// It returns when rung, on a signal, or at once if rung before.
		_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&b.rung)), futexWaitPrivate, 0, 0, 0, 0)
	}
}

// include/uapi/linux/futex.h
const (
	futexWaitPrivate = 0 | 128
	futexWakePrivate = 1 | 128
)
