package distance

import (
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// bell wakes a thread that waits for it. It is a futex: a channel would go
// through the runtime's scheduler and wake the thread tens of microseconds
// later.
type bell struct{ rung atomic.Uint32 }

func (b *bell) ring() {
	b.rung.Store(1)
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&b.rung)), futexWakePrivate, 1, 0, 0, 0)
}

func (b *bell) wait() {
	for !b.rung.CompareAndSwap(1, 0) {
		// It returns when rung, at a signal, or at once where rung already.
		_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&b.rung)), futexWaitPrivate, 0, 0, 0, 0)
	}
}

// include/uapi/linux/futex.h
const (
	futexWaitPrivate = 0 | 128
	futexWakePrivate = 1 | 128
)
