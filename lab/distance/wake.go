package distance

import (
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

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
